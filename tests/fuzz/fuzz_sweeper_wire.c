/* SPDX-License-Identifier: Apache-2.0
 * What the sweeper takes from ledger and gate: rows are within their pages, ids are ids, and what
 * is not understood is left out and counted. Told to a sweeper at work, no answer makes it send an
 * order of its own, or report as obeyed what the gate did not say it did. */
#include "tests/fuzz/fuzz_message.h"

#include "lib/pure/text.h"
#include "services/sweeper/wire.h"

static struct sweeper_wire wire;

static void check_id(const struct sweeper_id *id)
{
    HOLDS(tg_reservation_id_valid(id->text, strlen(id->text)));
}

static bool ordered(const struct sweeper_event *event, const struct sweeper_order *order)
{
    for (uint32_t i = 0; i < event->order_count; i++) {
        if (strcmp(event->orders[i].id.text, order->id.text) == 0 &&
            event->orders[i].kind == order->kind) {
            return true;
        }
    }
    return false;
}

static bool obeyed(const struct sweeper_event *event, const struct sweeper_result *result)
{
    for (uint32_t i = 0; i < event->result_count; i++) {
        if (strcmp(event->results[i].id.text, result->id.text) == 0 &&
            (event->results[i].obedience == SWEEPER_DONE ||
             event->results[i].obedience == SWEEPER_ALREADY)) {
            return true;
        }
    }
    return false;
}

/* Gives the event to a sweeper whose lane waits for exactly this kind of answer. */
static void step(enum sweeper_lane_name lane, enum sweeper_call call, struct sweeper_event *event)
{
    static struct sweeper_sale sale;
    static struct sweeper_actions actions;
    memset(&sale, 0, sizeof(sale));
    sale.lanes[lane].call = call;
    sale.lanes[lane].sequence = 1;
    event->lane = lane;
    event->sequence = 1;
    sweeper_step(&sale, (struct tg_mono){1000000}, event, &actions);
    HOLDS(sale.order_count <= SWEEPER_PAGE && sale.result_count <= SWEEPER_PAGE);
    HOLDS(sale.lapsed_count <= SWEEPER_PAGE && sale.hold_count <= SWEEPER_BURY_PAGE);
    for (uint32_t i = 0; i < sale.order_count; i++) {
        HOLDS(event->kind == SWEEPER_DUE && ordered(event, &sale.orders[i]));
    }
    if (actions.calls[SWEEPER_CARRY] == SWEEPER_CALL_OBEYED) {
        for (uint32_t i = 0; i < sale.result_count; i++) {
            HOLDS(obeyed(event, &sale.results[i]));
        }
    }
}

static void check_due(const ProtobufCMessage *message)
{
    const Tidegate__V1__LedgerDueReply *reply = (const Tidegate__V1__LedgerDueReply *)message;
    struct sweeper_event event;
    sweeper_wire_due(&wire, reply, &event);
    HOLDS(event.lapsed_count <= SWEEPER_PAGE && event.order_count <= SWEEPER_PAGE);
    HOLDS(reply->reason[0] == '\0' ? event.kind == SWEEPER_DUE : event.kind == SWEEPER_FAILED);
    for (uint32_t i = 0; i < event.lapsed_count; i++) {
        check_id(&event.lapsed[i]);
    }
    for (uint32_t i = 0; i < event.order_count; i++) {
        check_id(&event.orders[i].id);
    }
    step(SWEEPER_CARRY, SWEEPER_CALL_DUE, &event);
}

static void check_verdicts(const ProtobufCMessage *message)
{
    const Tidegate__V1__ExpireReply *reply = (const Tidegate__V1__ExpireReply *)message;
    struct sweeper_event event;
    sweeper_wire_verdicts(&wire, reply, &event);
    HOLDS(event.final_verdicts <= reply->n_verdicts);
    HOLDS(reply->reason[0] == '\0' || event.kind == SWEEPER_FAILED);
    step(SWEEPER_CARRY, SWEEPER_CALL_EXPIRE, &event);
}

static void check_results(const ProtobufCMessage *message)
{
    const Tidegate__V1__ObeyReply *reply = (const Tidegate__V1__ObeyReply *)message;
    struct sweeper_event event;
    sweeper_wire_results(&wire, reply, &event);
    HOLDS(event.result_count <= SWEEPER_PAGE);
    HOLDS(reply->reason[0] == '\0' || event.kind == SWEEPER_FAILED);
    for (uint32_t i = 0; i < event.result_count; i++) {
        check_id(&event.results[i].id);
    }
    step(SWEEPER_CARRY, SWEEPER_CALL_OBEY, &event);
}

static void check_stored(const ProtobufCMessage *message)
{
    const Tidegate__V1__ObeyedReply *reply = (const Tidegate__V1__ObeyedReply *)message;
    struct sweeper_event event;
    sweeper_wire_stored(&wire, reply, &event);
    HOLDS(event.kind == (reply->reason[0] == '\0' ? SWEEPER_STORED : SWEEPER_FAILED));
    step(SWEEPER_CARRY, SWEEPER_CALL_OBEYED, &event);
}

static void check_gate_due(const ProtobufCMessage *message)
{
    const Tidegate__V1__GateDueReply *reply = (const Tidegate__V1__GateDueReply *)message;
    struct sweeper_event event;
    sweeper_wire_gate_due(&wire, reply, &event);
    HOLDS(event.hold_count <= SWEEPER_BURY_PAGE);
    for (uint32_t i = 0; i < event.hold_count; i++) {
        check_id(&event.holds[i].id);
        HOLDS(tg_user_valid(event.holds[i].user, event.holds[i].user_length));
    }
    step(SWEEPER_BURY, SWEEPER_CALL_GATE_DUE, &event);
}

static const struct fuzz_message kinds[] = {
    FUZZ_MESSAGE(ledger_due_reply, check_due),    FUZZ_MESSAGE(expire_reply, check_verdicts),
    FUZZ_MESSAGE(obey_reply, check_results),      FUZZ_MESSAGE(obeyed_reply, check_stored),
    FUZZ_MESSAGE(gate_due_reply, check_gate_due),
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return fuzz_message_run(kinds, COUNT_OF(kinds), bytes, size);
}
