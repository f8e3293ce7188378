/* SPDX-License-Identifier: Apache-2.0
 * What is known of a sale while it is watched, and how it looks: as a screen, as a line of a log,
 * as JSON. Pure: the time is an argument. Everything shows its age: a number that is not heard of
 * any more says so. */
#ifndef TG_CTL_VIEW_H
#define TG_CTL_VIEW_H

#include "lib/pure/clock.h"
#include "lib/pure/limit.h"
#include "tidegate/v1/admission.pb-c.h"
#include "tidegate/v1/ledger.pb-c.h"
#include "tidegate/v1/queue.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"
#include "tools/tidegatectl/ctl.h"

struct ctl_heard {
    bool ever;
    struct tg_mono at;
};

struct ctl_view {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    struct ctl_heard stock_heard, board_heard, state_heard, pace_heard;
    /* gate.stock */
    uint64_t initial, free, held, settled, gate_epoch;
    bool gate_armed, gate_paused;
    int64_t lease_ms; /* attested for, when it was heard */
    /* queue.board */
    uint64_t waiting, watermark, queue_term;
    /* admission.pace */
    uint64_t pace_milli;
    char limiting[24];
    /* state */
    Tidegate__V1__SalePhase phase;
    uint64_t generation, epoch;
    uint32_t clean_rounds;
    int64_t proof_age_ms; /* -1: never */
    uint32_t pause_count;
    char causes[4][96];
};

void ctl_view_stock(struct ctl_view *view, const Tidegate__V1__Stock *stock, struct tg_mono now);
void ctl_view_board(struct ctl_view *view, const Tidegate__V1__Board *board, struct tg_mono now);
void ctl_view_pace(struct ctl_view *view, const Tidegate__V1__Pace *pace, struct tg_mono now);
void ctl_view_state(struct ctl_view *view, const Tidegate__V1__SaleState *state,
                    struct tg_mono now);

/* Several lines, without moving the cursor. */
void ctl_view_screen(FILE *out, const struct ctl_options *options, const struct ctl_view *view,
                     struct tg_mono now);
/* One line: name=value, unknown ones as "-". */
void ctl_view_line(FILE *out, const struct ctl_view *view, struct tg_mono now);
json_t *ctl_view_json(const struct ctl_view *view, struct tg_mono now);

#endif
