/* SPDX-License-Identifier: Apache-2.0
 * Draws again from published files: draw.json and roster (one entrant a line) in one folder. Trusts
 * neither; docs/draw.md is the rule. */
#ifndef TG_CTL_DRAW_CHECK_H
#define TG_CTL_DRAW_CHECK_H

#include "lib/pure/draw.h"
#include "lib/pure/limit.h"
#include "tools/tidegatectl/ctl.h"

/* What draw.json says. */
struct draw_claim {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation, parts;
    uint8_t commitment[TG_DRAW_BYTES];
    struct tg_draw draw;
};

struct draw_wish {
    const char *entrant;    /* whose rank is told; NULL: nobody's */
    const char *order_file; /* where the whole order goes, "RANK ENTRANT" a line; NULL: nowhere */
    enum ctl_format format;
};

/* Each prints what is wrong to stderr and returns false. */
bool draw_claim_read(const char *folder, struct draw_claim *out_claim);
/* Checks commitment, roster, root and seed, and reports. About 2 us an entrant. */
bool draw_check(const char *folder, const struct draw_wish *wish);

#endif
