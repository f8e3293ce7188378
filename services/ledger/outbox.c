/* SPDX-License-Identifier: Apache-2.0
 * Events on their way out: a page from the outbox, each event to JetStream, those it stored marked
 * as published. An event that was stored but not marked is sent again under the same message id,
 * which JetStream takes once. */
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "services/ledger/service_parts.h"

#include <string.h>

enum { EVENT_MS = 5000 };

static void mark_page(struct ledger *ledger)
{
    struct ledger_publisher *publisher = &ledger->publisher;
    if (publisher->waiting > 0 || publisher->stored_count == 0) {
        return;
    }
    int error = TG_FAILPOINT(LEDGER_PUBLISHED);
    if (error == 0) {
        error = ledger->store->published(ledger->store->self, publisher->stored,
                                         publisher->stored_count, 0);
    }
    publisher->marking = error == 0;
    publisher->stored_count = error == 0 ? publisher->stored_count : 0;
}

static void on_stored(void *context, uint64_t token, int status)
{
    struct ledger *ledger = context;
    struct ledger_publisher *publisher = &ledger->publisher;
    publisher->waiting--;
    if (status == 0) {
        publisher->stored[publisher->stored_count++] = publisher->ids[token];
        tg_metric_add(TG_METRIC_EVENTS, "", 1);
    } else {
        publisher->more = false; /* JetStream is not well: rest until the next turn */
    }
    mark_page(ledger);
}

static void send_event(struct ledger *ledger, const struct ledger_event *from, uint32_t place)
{
    Tidegate__V1__SaleEvent event = TIDEGATE__V1__SALE_EVENT__INIT;
    event.sale = ledger_text(from->sale);
    event.generation = from->generation;
    event.kind = ledger_text(from->kind);
    event.reservation_id = ledger_text(from->reservation.text);
    event.user =
        (ProtobufCBinaryData){.len = from->user_length, .data = (uint8_t *)(uintptr_t)from->user};
    event.n_units = from->unit_count;
    event.units = ledger_wire_units(&ledger->wire_units[0], from->units, from->unit_count);
    event.order_id = ledger_text(from->order_id);
    event.payment_id = ledger_text(from->payment);
    event.amount_minor = (uint64_t)from->amount_minor;
    event.currency = ledger_text(from->currency);
    event.at_ms = from->at_ms;
    event.detail = ledger_text(from->detail);
    ledger->publisher.ids[place] = from->id;
    const int error =
        tg_bus_event(tg_app_bus(ledger->app), from->sale, from->kind, from->message_id, &event.base,
                     EVENT_MS, on_stored, ledger, place);
    if (error == 0) {
        ledger->publisher.waiting++;
    }
}

void ledger_events_read(void *context, uint64_t token, int status,
                        const struct ledger_event *events, uint32_t count)
{
    struct ledger *ledger = context;
    struct ledger_publisher *publisher = &ledger->publisher;
    publisher->fetching = false;
    publisher->stored_count = 0;
    publisher->more = status == 0 && count == LEDGER_EVENTS_PAGE;
    for (uint32_t i = 0; status == 0 && i < count; i++) {
        send_event(ledger, &events[i], i);
    }
}

void ledger_events_marked(void *context, uint64_t token, int status)
{
    struct ledger *ledger = context;
    ledger->publisher.marking = false;
    ledger->publisher.stored_count = 0;
    if (status == 0 && ledger->publisher.more) {
        ledger_publish_outbox(ledger);
    }
}

static void on_stream(void *context, uint64_t token, int status)
{
    struct ledger *ledger = context;
    if (status == 0) {
        ledger->publisher.stream_made = true;
    } else {
        ledger->publisher.fetching = false;
        tg_log(TG_LOG_WARN, "ledger.stream_missing", TG_NUMBER_FIELD("status", status));
    }
    ledger->publisher.fetching = false;
}

void ledger_publish_outbox(void *context)
{
    struct ledger *ledger = context;
    struct ledger_publisher *publisher = &ledger->publisher;
    if (ledger->draining || publisher->fetching || publisher->marking || publisher->waiting > 0 ||
        !tg_bus_connected(tg_app_bus(ledger->app))) {
        return;
    }
    if (!publisher->stream_made) {
        publisher->fetching = tg_bus_make_stream(tg_app_bus(ledger->app), on_stream, ledger) == 0;
        return;
    }
    publisher->fetching =
        ledger->store->events(ledger->store->self, tg_app_instance(ledger->app), 0) == 0;
}

size_t ledger_publisher_busy(const struct ledger *ledger)
{
    return ledger->publisher.waiting + (ledger->publisher.fetching ? 1u : 0u) +
           (ledger->publisher.marking ? 1u : 0u);
}
