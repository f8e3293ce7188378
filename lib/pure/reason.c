/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/reason.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static const struct tg_reason_row rows[TG_REASON_COUNT] = {
    [TG_REASON_NONE] = {"", 200, TG_RETRY_NEVER, "Done", "The request was carried out."},
#define TG_REASON(id, code_, status_, retry_, title_, detail_)                                     \
    [TG_REASON_##id] = {code_, status_, TG_RETRY_##retry_, title_, detail_},
#include "catalog/reasons.def"
#undef TG_REASON
};

const struct tg_reason_row *tg_reason_row(enum tg_reason reason)
{
    assert((unsigned)reason < TG_REASON_COUNT);
    return &rows[reason];
}

const char *tg_reason_code(enum tg_reason reason)
{
    return tg_reason_row(reason)->code;
}

enum tg_reason tg_reason_from_code(const char *code)
{
    if (code == NULL) {
        return TG_REASON_NONE;
    }
    for (unsigned i = 0; i < TG_REASON_COUNT; i++) {
        if (strcmp(rows[i].code, code) == 0) {
            return (enum tg_reason)i;
        }
    }
    return TG_REASON_COUNT;
}
