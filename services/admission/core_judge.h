/* SPDX-License-Identifier: Apache-2.0
 * The judgement of one request for a pass. Pure, part of the core. */
#ifndef ADMISSION_CORE_JUDGE_H
#define ADMISSION_CORE_JUDGE_H

#include "services/admission/core.h"

/* Order: ticket is ours and of this sale -> its generation -> its holder -> the sale's phase -> a
 * fresh board -> rank below the watermark -> pass. Nothing is remembered: asked again in the same
 * minute, the answer is the same text. */
void admission_judge(const struct admission_brain *brain, struct admission_now now,
                     const struct admission_event *ask, struct admission_answer *out_answer);

#endif
