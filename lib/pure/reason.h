/* SPDX-License-Identifier: Apache-2.0
 * Domain outcomes of catalog/reasons.def as an enum. Codes travel as text; unknown text is
 * TG_REASON_COUNT, never a guess. */
#ifndef TG_PURE_REASON_H
#define TG_PURE_REASON_H

#include <stdbool.h>

enum tg_reason {
    TG_REASON_NONE = 0, /* no refusal: the thing was done */
#define TG_REASON(id, code, status, retry, title, detail) TG_REASON_##id,
#include "catalog/reasons.def"
#undef TG_REASON
    TG_REASON_COUNT
};

enum tg_retry { TG_RETRY_NEVER, TG_RETRY_FRESH, TG_RETRY_LATER };

struct tg_reason_row {
    const char *code; /* "" for TG_REASON_NONE */
    int status;
    enum tg_retry retry;
    const char *title;
    const char *detail;
};

/* The row of a reason; reason < TG_REASON_COUNT. */
const struct tg_reason_row *tg_reason_row(enum tg_reason reason);

/* The code of a reason, as it travels; "" for NONE. */
const char *tg_reason_code(enum tg_reason reason);

/* The reason of a code; "" and NULL are NONE (protobuf's empty string); unknown is TG_REASON_COUNT.
 */
enum tg_reason tg_reason_from_code(const char *code);

#endif
