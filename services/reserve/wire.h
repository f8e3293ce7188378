/* SPDX-License-Identifier: Apache-2.0
 * Messages of the bus <-> the core's data. Everything a peer says is checked here; the core never
 * sees a name, a number or a list that is out of its bounds. */
#ifndef RESERVE_WIRE_H
#define RESERVE_WIRE_H

#include "services/reserve/core.h"
#include "services/reserve/script.h"
#include "tidegate/v1/ledger.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"

struct reserve_secrets {
    uint8_t pass_mac[TG_KEY_BYTES];
    uint8_t reservation[TG_KEY_BYTES];
};

/* Checks shape, pass (jti recomputed, compared in constant time) and demands; derives the
 * reservation id. NONE, or why not. */
enum tg_reason reserve_wire_hold(const struct reserve_secrets *secrets, const struct tg_sale *sale,
                                 const Tidegate__V1__HoldRequest *message,
                                 struct reserve_request *out_request);

/* Messages with the lists they point to. They borrow from `outcome` or `record`, and from
 * themselves: do not copy. */
struct reserve_unit_list {
    Tidegate__V1__UnitRef refs[TG_MAX_UNITS_PER_HOLD];
    Tidegate__V1__UnitRef *pointers[TG_MAX_UNITS_PER_HOLD];
};
struct reserve_hold_reply {
    Tidegate__V1__HoldReply message;
    struct reserve_unit_list units;
};
void reserve_wire_hold_reply(const struct reserve_outcome *outcome,
                             struct reserve_hold_reply *out_reply);
struct reserve_record_request {
    Tidegate__V1__RecordRequest message;
    struct reserve_unit_list units;
};
void reserve_wire_record(const struct tg_sale *sale, uint64_t epoch,
                         const struct reserve_flow *flow,
                         struct reserve_record_request *out_request);
/* status and reply as tg_bus_on_reply got them. */
void reserve_wire_recorded(int status, const Tidegate__V1__RecordReply *reply,
                           struct reserve_ledger_answer *out_answer);
void reserve_wire_read(int status, const Tidegate__V1__ReservationReply *reply,
                       struct reserve_ledger_answer *out_answer);

/* A row of the ledger's snapshot as the gate keeps it. False: not readable. out_packed:
 * TG_HOLD_RECORD_BYTES. */
bool reserve_wire_snapshot_row(const Tidegate__V1__SnapshotRow *row, const char **out_state,
                               char *out_packed, size_t *out_length);

struct reserve_order {
    enum reserve_script script; /* SETTLE, RELEASE, EXTEND */
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    int64_t deadline_ms;
};
/* False: not an order. */
bool reserve_wire_order(const Tidegate__V1__Order *message, struct reserve_order *out_order);
Tidegate__V1__OrderKind reserve_wire_order_kind(enum reserve_script script);
Tidegate__V1__Obedience reserve_wire_obedience(enum reserve_obeyed obeyed);

struct reserve_stock {
    Tidegate__V1__Stock message;
    Tidegate__V1__ItemStock items[TG_MAX_ITEMS_PER_SALE];
    Tidegate__V1__ItemStock *pointers[TG_MAX_ITEMS_PER_SALE];
};
/* armed false: the counters are not told. */
void reserve_wire_stock(const struct tg_sale *sale, const struct reserve_look *look, bool armed,
                        struct reserve_stock *out_stock);

#endif
