/* SPDX-License-Identifier: Apache-2.0
 * Admission's settings as a struct. */
#ifndef ADMISSION_SETTINGS_H
#define ADMISSION_SETTINGS_H

#include "lib/io/config.h"

struct admission_settings {
#include "lib/io/config_members.h"
#include "services/admission/settings.def"
#include "lib/io/config_end.h"
};

#endif
