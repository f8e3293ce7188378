/* SPDX-License-Identifier: Apache-2.0
 * Between protobuf and the sweeper's core: replies are checked here, whatever is not a well-formed
 * row is left out and counted; requests are filled from the core's pages. No I/O. */
#ifndef SWEEPER_WIRE_H
#define SWEEPER_WIRE_H

#include "services/sweeper/core.h"
#include "tidegate/v1/ledger.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"

/* Room for one reply's rows and one request's messages; belongs to the shell, used within one call.
 */
struct sweeper_wire {
    struct sweeper_id lapsed[SWEEPER_PAGE];
    struct sweeper_order orders[SWEEPER_PAGE];
    struct sweeper_result results[SWEEPER_PAGE];
    struct sweeper_hold holds[SWEEPER_BURY_PAGE];
    char *ids[SWEEPER_PAGE];
    Tidegate__V1__Order order_rows[SWEEPER_PAGE];
    Tidegate__V1__Order *order_list[SWEEPER_PAGE];
    Tidegate__V1__OrderResult result_rows[SWEEPER_PAGE];
    Tidegate__V1__OrderResult *result_list[SWEEPER_PAGE];
    Tidegate__V1__LapsedHold hold_rows[SWEEPER_BURY_PAGE];
    Tidegate__V1__LapsedHold *hold_list[SWEEPER_BURY_PAGE];
    uint32_t malformed; /* rows left out of the last reply */
};

/* Each turns a reply into an event (kind and contents; lane and sequence are the caller's). The
 * event borrows `wire`. A reply that carries a reason becomes SWEEPER_FAILED. */
void sweeper_wire_due(struct sweeper_wire *wire, const Tidegate__V1__LedgerDueReply *reply,
                      struct sweeper_event *out_event);
void sweeper_wire_verdicts(struct sweeper_wire *wire, const Tidegate__V1__ExpireReply *reply,
                           struct sweeper_event *out_event);
void sweeper_wire_results(struct sweeper_wire *wire, const Tidegate__V1__ObeyReply *reply,
                          struct sweeper_event *out_event);
void sweeper_wire_stored(struct sweeper_wire *wire, const Tidegate__V1__ObeyedReply *reply,
                         struct sweeper_event *out_event);
void sweeper_wire_gate_due(struct sweeper_wire *wire, const Tidegate__V1__GateDueReply *reply,
                           struct sweeper_event *out_event);

/* Each fills a request that borrows `wire` and `sale`; `sale_name` is borrowed too. */
void sweeper_wire_expire(struct sweeper_wire *wire, struct sweeper_sale *sale, char *sale_name,
                         Tidegate__V1__ExpireRequest *out_request);
void sweeper_wire_bury(struct sweeper_wire *wire, struct sweeper_sale *sale, char *sale_name,
                       Tidegate__V1__ExpireRequest *out_request);
void sweeper_wire_obey(struct sweeper_wire *wire, struct sweeper_sale *sale, char *sale_name,
                       Tidegate__V1__ObeyRequest *out_request);
void sweeper_wire_obeyed(struct sweeper_wire *wire, struct sweeper_sale *sale, char *sale_name,
                         Tidegate__V1__ObeyedRequest *out_request);

#endif
