/* SPDX-License-Identifier: Apache-2.0 */
#include "services/invariant/core_log.h"

#include <string.h>

enum invariant_log_step invariant_log_take(struct invariant_log *log,
                                           const struct invariant_log_entry *entry)
{
    if (entry->sequence <= log->sequence) {
        return INVARIANT_LOG_TAKEN;
    }
    if (entry->sequence != log->sequence + 1) {
        return INVARIANT_LOG_GAP;
    }
    int64_t stock = 0;
    if (!entry->readable || entry->stock_after < 0 ||
        (log->stock_known && (__builtin_add_overflow(log->stock, entry->change, &stock) ||
                              stock != entry->stock_after))) {
        return INVARIANT_LOG_TORN;
    }
    log->sequence = entry->sequence;
    log->stock = entry->stock_after;
    log->stock_known = true;
    return INVARIANT_LOG_TAKEN;
}

int invariant_log_change(const char *kind, size_t kind_length, uint32_t unit_count,
                         int64_t *out_change)
{
    static const struct {
        const char *kind;
        int sign;
    } kinds[] = {{"hold", -1}, {"settle", 0}, {"release", 1}, {"return", 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strlen(kinds[i].kind) == kind_length && memcmp(kinds[i].kind, kind, kind_length) == 0) {
            *out_change = kinds[i].sign * (int64_t)unit_count;
            return 0;
        }
    }
    return TG_ERR_MALFORMED;
}

bool invariant_log_meets(const struct invariant_log *log, uint64_t sequence, uint64_t stock)
{
    return log->sequence == sequence && (!log->stock_known || (uint64_t)log->stock == stock);
}
