/* SPDX-License-Identifier: Apache-2.0
 * Messages of the bus -> checked plain data. Nothing out of its bounds gets past here, and nothing
 * a reply says is put into an answer before it was checked. */
#ifndef EDGE_WIRE_H
#define EDGE_WIRE_H

#include "services/edge/core.h"

#include "tidegate/v1/admission.pb-c.h"
#include "tidegate/v1/ledger.pb-c.h"
#include "tidegate/v1/queue.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"

/* Publications. NONE or MALFORMED; `sale` is the one of the subject. `heard` is left to the caller.
 */
enum tg_reason edge_wire_board(const char *sale, const Tidegate__V1__Board *message,
                               struct edge_board *out_board);
enum tg_reason edge_wire_stock(const char *sale, const Tidegate__V1__Stock *message,
                               struct edge_stock *out_stock);

/* Replies. MALFORMED where a reply contradicts its form: for the caller its outcome is unknown. A
 * reason nobody knows is MALFORMED too. */
struct edge_grant {
    bool opened;
    enum tg_reason reason; /* NONE: granted */
    uint64_t generation, first;
    uint32_t count;
};
enum tg_reason edge_wire_lease(const Tidegate__V1__LeaseReply *reply, struct edge_grant *out_grant);

struct edge_admitted {
    enum tg_reason reason; /* NONE: here is the pass; WAITING; or a refusal */
    const char *pass;      /* borrowed; only characters of a compact JWT */
    struct tg_wall expires_at;
    uint64_t watermark;
};
enum tg_reason edge_wire_pass(const Tidegate__V1__PassReply *reply,
                              struct edge_admitted *out_admitted);

struct edge_units {
    uint32_t count;
    struct {
        uint32_t item, unit;
    } units[TG_MAX_UNITS_PER_HOLD];
};
struct edge_held {
    enum tg_reason reason; /* NONE: held */
    const char
        *reservation; /* borrowed; with LIMIT_REACHED the buyer's live one, "" when unknown */
    struct tg_wall expires_at;
    struct edge_units units;
    bool replayed, final;
    int64_t retry_after_ms;
};
enum tg_reason edge_wire_hold(const Tidegate__V1__HoldReply *reply, struct edge_held *out_held);

struct edge_record {
    enum tg_reason reason; /* NONE: done */
    const char *reservation, *sale, *state, *order,
        *payment; /* borrowed; order and payment "" when there is none */
    struct tg_wall expires_at;
    struct edge_units units;
    bool replayed;
};
enum tg_reason edge_wire_reservation(const Tidegate__V1__ReservationReply *reply,
                                     struct edge_record *out_record);

#endif
