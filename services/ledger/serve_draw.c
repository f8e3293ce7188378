/* SPDX-License-Identifier: Apache-2.0
 * For the queue: the roster of a draw as it grows, and what was drawn from it. */
#include "lib/io/log.h"
#include "services/ledger/service_parts.h"

void ledger_on_draw(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    struct ledger_draw_ask ask;
    uint64_t token;
    const enum tg_reason reason =
        ledger_wire_draw((const Tidegate__V1__DrawRequest *)tg_bus_body(take_incoming),
                         tg_bus_sale(take_incoming), &ask);
    struct ledger_pending *pending = ledger_ask_begin(ledger, take_incoming, reason, &token);
    if (pending == NULL) {
        return;
    }
    pending->drawing = ask.step;
    ledger_ask_sent(ledger, token, ledger->store->draw(ledger->store->self, &ask, token));
}

/* What everybody is to hear of at once. */
static void announce(struct ledger *ledger, enum ledger_draw_step step, enum tg_reason reason)
{
    switch (step) {
    case LEDGER_ROSTER_APPEND:
    case LEDGER_ROSTER_READ:
        return;
    case LEDGER_DRAW_FREEZE:
    case LEDGER_DRAW_REVEAL:
        break;
    }
    tg_log(TG_LOG_INFO, step == LEDGER_DRAW_FREEZE ? "ledger.draw_frozen" : "ledger.draw_revealed",
           TG_TEXT_FIELD("reason", tg_reason_code(reason)));
    ledger_tell_states(ledger);
}

void ledger_drawn(void *context, uint64_t token, int status, const struct ledger_drawn *answer)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending = ledger_ask_end(ledger, token, status, TG_REASON_NONE);
    Tidegate__V1__DrawReply reply = TIDEGATE__V1__DRAW_REPLY__INIT;
    if (pending == NULL) {
        return;
    }
    reply.reason = ledger_text(tg_reason_code(answer->reason));
    reply.stored = answer->stored;
    reply.entrants.len = answer->count * TG_ENTRANT_BYTES;
    reply.entrants.data = (uint8_t *)(uintptr_t)answer->entrants;
    announce(ledger, pending->drawing, answer->reason);
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}
