/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/seen.h"

#include <stdlib.h>

void rehearse_log_add(struct rehearse_log *log, const struct rehearse_seen *row)
{
    if (log->count == log->capacity) {
        size_t capacity = log->capacity > 0 ? 2 * log->capacity : 4096;
        struct rehearse_seen *rows = realloc(log->rows, capacity * sizeof(*rows));
        if (rows == NULL) {
            abort();
        }
        log->rows = rows;
        log->capacity = capacity;
    }
    log->rows[log->count++] = *row;
}

void rehearse_log_clear(struct rehearse_log *log)
{
    free(log->rows);
    *log = (struct rehearse_log){0};
}
