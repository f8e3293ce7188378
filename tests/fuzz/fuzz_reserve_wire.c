/* SPDX-License-Identifier: Apache-2.0
 * What the reserve daemon takes from the bus: a request that is accepted names only units there
 * are, each once, within the buyer's limit, and carries a pass id only we can make; of the ledger's
 * answers only what says what became of the hold is an answer. */
#include "tests/fuzz/fuzz_message.h"

#include "lib/pure/pass.h"
#include "services/reserve/wire.h"

static const struct reserve_secrets secrets = {.pass_mac = "mac key", .reservation = "id key"};
static const struct tg_sale sale = {.name = "sale",
                                    .generation = 1,
                                    .item_count = 2,
                                    .items = {{.sku = "a", .units = 100}, {.sku = "b", .units = 3}},
                                    .limit_per_buyer = 8};

static void check_demands(const struct reserve_request *request)
{
    uint64_t total = 0;
    HOLDS(request->demand_count >= 1 && request->demand_count <= sale.item_count);
    for (uint32_t i = 0; i < request->demand_count; i++) {
        const struct reserve_demand *demand = &request->demands[i];
        HOLDS(demand->item < sale.item_count && demand->any + demand->named_count >= 1);
        HOLDS(demand->named_count <= TG_MAX_UNITS_PER_HOLD);
        total += demand->any + demand->named_count;
        for (uint32_t j = 0; j < demand->named_count; j++) {
            HOLDS(demand->named[j] < sale.items[demand->item].units);
            for (uint32_t k = 0; k < j; k++) {
                HOLDS(demand->named[j] != demand->named[k]);
            }
        }
        for (uint32_t j = 0; j < i; j++) {
            HOLDS(request->demands[j].item != demand->item);
        }
    }
    HOLDS(total == request->wanted_units && total <= sale.limit_per_buyer);
}

/* The pass id is made here, so that the rest of a request is looked at; before that the message as
 * it came must be refused, since it cannot have one. */
static void check_hold(const ProtobufCMessage *message)
{
    Tidegate__V1__HoldRequest request = *(const Tidegate__V1__HoldRequest *)message;
    struct reserve_request taken = {.demand_count = 0};
    char jti[TG_JTI_LENGTH + 1];
    HOLDS(reserve_wire_hold(&secrets, &sale, &request, &taken) != TG_REASON_NONE);
    if (request.user.len > TG_MAX_USER_BYTES || request.place.len != TG_PLACE_BYTES) {
        return;
    }
    tg_jti(secrets.pass_mac, sale.name, sale.generation, request.place.data, request.user.data,
           request.user.len, request.window, jti);
    request.jti = jti;
    request.generation = sale.generation;
    request.pass_expires_at_ms = tg_pass_expires(request.window).ms;
    if (reserve_wire_hold(&secrets, &sale, &request, &taken) != TG_REASON_NONE) {
        return;
    }
    HOLDS(tg_reservation_id_valid(taken.reservation, strlen(taken.reservation)));
    HOLDS(tg_user_valid(taken.user, taken.user_length));
    HOLDS(taken.pass_expires_ms == request.pass_expires_at_ms);
    check_demands(&taken);
}

static void check_recorded(const ProtobufCMessage *message)
{
    const Tidegate__V1__RecordReply *reply = (const Tidegate__V1__RecordReply *)message;
    struct reserve_ledger_answer answer;
    reserve_wire_recorded(TG_ERR_TIMEOUT, NULL, &answer);
    HOLDS(answer.recorded == RESERVE_RECORDED_UNKNOWN);
    reserve_wire_recorded(0, reply, &answer);
    HOLDS(answer.unit_count <= TG_MAX_UNITS_PER_HOLD);
    switch (answer.recorded) {
    case RESERVE_RECORDED_NEW:
        HOLDS(reply->outcome == TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_RECORDED);
        HOLDS(answer.expires_ms > 0);
        break;
    case RESERVE_RECORDED_KNOWN:
        HOLDS(reply->outcome == TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_ALREADY);
        HOLDS(answer.expires_ms > 0);
        break;
    case RESERVE_RECORDED_REFUSED:
        HOLDS(reply->outcome == TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_REFUSED);
        break;
    case RESERVE_RECORDED_UNKNOWN:
        break;
    }
}

static void check_read(const ProtobufCMessage *message)
{
    const Tidegate__V1__ReservationReply *reply = (const Tidegate__V1__ReservationReply *)message;
    struct reserve_ledger_answer answer;
    reserve_wire_read(TG_ERR_DISCONNECTED, NULL, &answer);
    HOLDS(answer.recorded == RESERVE_RECORDED_UNKNOWN);
    reserve_wire_read(0, reply, &answer);
    HOLDS(answer.unit_count <= TG_MAX_UNITS_PER_HOLD);
    HOLDS(answer.recorded == RESERVE_RECORDED_UNKNOWN ||
          (answer.recorded == RESERVE_RECORDED_KNOWN && reply->reason[0] == '\0'));
}

static void check_snapshot_row(const ProtobufCMessage *message)
{
    const Tidegate__V1__SnapshotRow *row = (const Tidegate__V1__SnapshotRow *)message;
    struct tg_hold_record record;
    const char *state = "";
    char packed[TG_HOLD_RECORD_BYTES];
    size_t length = 0;
    if (!reserve_wire_snapshot_row(row, &state, packed, &length)) {
        return;
    }
    HOLDS(length > 0 && length < sizeof(packed));
    bool ended = strcmp(state, "released") == 0;
    HOLDS(ended || strcmp(state, "held") == 0 || strcmp(state, "settled") == 0);
    if (!ended) {
        HOLDS(tg_hold_record_parse(packed, length, &record) == 0);
        HOLDS(record.unit_count == row->n_units && record.window == row->window);
    }
}

static void check_order(const ProtobufCMessage *message)
{
    const Tidegate__V1__Order *asked = (const Tidegate__V1__Order *)message;
    struct reserve_order order;
    if (reserve_wire_order(asked, &order)) {
        HOLDS(tg_reservation_id_valid(order.reservation, strlen(order.reservation)));
        HOLDS(reserve_wire_order_kind(order.script) == asked->kind);
        HOLDS(order.script != RESERVE_SCRIPT_EXTEND || order.deadline_ms > 0);
    }
}

static const struct fuzz_message kinds[] = {
    FUZZ_MESSAGE(hold_request, check_hold),
    FUZZ_MESSAGE(record_reply, check_recorded),
    FUZZ_MESSAGE(reservation_reply, check_read),
    FUZZ_MESSAGE(snapshot_row, check_snapshot_row),
    FUZZ_MESSAGE(order, check_order),
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return fuzz_message_run(kinds, COUNT_OF(kinds), bytes, size);
}
