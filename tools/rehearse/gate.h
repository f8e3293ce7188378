/* SPDX-License-Identifier: Apache-2.0
 * What the referee reads in Redis: counters and free maps of the sale's gate, all shards. It
 * blocks. */
#ifndef REHEARSE_GATE_H
#define REHEARSE_GATE_H

#include "tools/rehearse/referee.h"
#include "tools/rehearse/sale.h"

struct rehearse_gate {
    bool known; /* every shard has a gate of this epoch */
    uint64_t free, held, settled, bits;
    uint64_t sequence; /* of the log, summed over shards */
    uint64_t unacked;
};

/* url: redis://[:PASSWORD@]HOST:PORT. 0 or a negative error; a missing gate is known = false. */
TG_MUST_CHECK int rehearse_gate_read(const char *url, const struct rehearse_sale *sale,
                                     struct rehearse_gate *out_gate);

#endif
