/* SPDX-License-Identifier: Apache-2.0
 * Care for the gate, as services/reserve/service_care.c does it: looks, pauses, loading. */
#include "tests/sim/sim.h"

#include <string.h>

static struct reserve_node *at(uint8_t node)
{
    return &sim.reserves[node - NODE_RESERVE];
}

static struct reserve_care_view view_of(uint8_t node)
{
    const struct sim_connection *connection = &sim.nodes[node].connection;
    return (struct reserve_care_view){.now = sim_mono(node),
                                      .sale = &at(node)->view,
                                      .run_id = connection->up ? connection->run_id : NULL,
                                      .noeviction = true};
}

void reserve_close_gate(uint8_t node, sim_pause pause, const char *cause)
{
    struct reserve_call call;
    if (at(node)->stated) {
        reserve_call_pause(&call, sim_keys(at(node)->view.epoch));
        reserve_call_pause_id(&call, sim_pause_text(pause), cause);
        gate_call(node, &call, USE_PAUSE, 0);
    }
}

void reserve_write_pauses(uint8_t node)
{
    const struct tg_sale *view = &at(node)->view;
    struct reserve_call call;
    if (view->pause_count + view->own_pause_count == 0) {
        return;
    }
    reserve_call_pause(&call, sim_keys(view->epoch));
    for (uint32_t i = 0; i < view->pause_count; i++) {
        reserve_call_pause_id(&call, view->pauses[i].id, view->pauses[i].cause);
    }
    for (uint32_t i = 0; i < view->own_pause_count; i++) {
        reserve_call_pause_id(&call, view->own_pauses[i].id, view->own_pauses[i].cause);
    }
    gate_call(node, &call, USE_PAUSE, 0);
}

static void lift_pauses(uint8_t node)
{
    const struct reserve_look *look = &at(node)->care.look;
    struct reserve_call call;
    reserve_call_lift(&call, sim_keys(at(node)->view.epoch));
    for (uint32_t i = 0; i < look->pause_count; i++) {
        if (reserve_care_lifts(&at(node)->view, look->pauses[i])) {
            reserve_call_lift_id(&call, look->pauses[i]);
        }
    }
    gate_call(node, &call, USE_LIFT, 0);
}

/* ---- loading ---- */

static bool loader_of(uint8_t node, struct reserve_loader *out_loader)
{
    const struct sim_connection *connection = &sim.nodes[node].connection;
    *out_loader = (struct reserve_loader){.keys = sim_keys(at(node)->view.epoch),
                                          .instance = sim.nodes[node].instance,
                                          .run_id = connection->run_id,
                                          .replication_id = connection->replication_id};
    return connection->up && out_loader->keys->epoch == at(node)->care.epoch;
}

static void feed(uint8_t node, const struct reserve_care_event *event,
                 const struct ledger_page *page);

static void failed(uint8_t node, enum reserve_care_event_kind kind)
{
    const struct reserve_care_event event = {.kind = kind, .result = RESERVE_RESULT_FAILED};
    feed(node, &event, NULL);
}

/* A row of the ledger as the packed hold of a gate. */
static const char *pack(const struct ledger_row *row, struct reserve_word *out_packed)
{
    const struct sim_id *id = &sim.ids[row->id];
    const bool live = row->state == LEDGER_PENDING || row->state == LEDGER_CONFIRMED;
    struct tg_hold_record record = {.window = row->window,
                                    .deadline_ms = row->expires_ms,
                                    .user = {'u', (uint8_t)('0' + row->user)},
                                    .user_length = 2,
                                    .place = {id->buyer, id->place},
                                    .digest = {0, (uint8_t)row->id}};
    for (uint8_t i = 0; live && i < row->unit_count; i++) {
        record.units[record.unit_count] =
            (struct tg_unit_ref){row->units[i].item, row->units[i].unit};
        record.slots[record.unit_count++] = row->units[i].slot;
    }
    char text[TG_HOLD_RECORD_BYTES];
    size_t length;
    if (live) {
        length = tg_hold_record_format(&record, text);
    } else { /* a row that holds nothing: "-" for units and slots, as services/reserve/wire_out.c */
        record.unit_count = 1;
        record.units[0] = (struct tg_unit_ref){0, 0};
        length = tg_hold_record_format(&record, text);
        char *units = memmem(text, length, " 0:0 0 ", 7);
        memcpy(units, " - - ", 5);
        memmove(units + 5, units + 7, (size_t)(text + length - units - 7));
        length -= 2;
    }
    char *room = sim_room(length);
    memcpy(room, text, length);
    *out_packed = (struct reserve_word){room, length};
    return row->state == LEDGER_PENDING     ? "held"
           : row->state == LEDGER_CONFIRMED ? "settled"
                                            : "released";
}

static void run_page(uint8_t node, const struct ledger_page *page)
{
    struct reserve_loader loader;
    struct reserve_call call;
    if (!loader_of(node, &loader)) {
        failed(node, RESERVE_CARE_PAGED);
        return;
    }
    reserve_call_load_page(&call, &loader, at(node)->care.page);
    for (uint8_t i = 0; i < page->count; i++) {
        struct reserve_word packed;
        const char *state = pack(&page->rows[i], &packed);
        reserve_call_load_row(&call, state, sim.ids[page->rows[i].id].text, &packed);
    }
    gate_call(node, &call, USE_PAGE, 0);
}

static void run_step(uint8_t node, enum reserve_care_action action)
{
    struct reserve_loader loader;
    struct reserve_call call;
    const bool begin = action == RESERVE_CARE_DO_BEGIN, arm = action == RESERVE_CARE_DO_ARM;
    if (!loader_of(node, &loader)) {
        failed(node, begin ? RESERVE_CARE_BEGUN : arm ? RESERVE_CARE_ARMED : RESERVE_CARE_FINISHED);
        return;
    }
    if (begin) {
        reserve_call_load_begin(&call, &loader, &at(node)->view);
    } else if (arm) {
        reserve_call_arm(&call, &loader);
    } else {
        reserve_call_load_finish(&call, &loader);
    }
    gate_call(node, &call, begin ? USE_BEGIN : arm ? USE_ARM : USE_FINISH, 0);
}

static void run_fetch(uint8_t node)
{
    const struct reserve_care *care = &at(node)->care;
    const int id = sim_id_of(care->after, strlen(care->after));
    const union sim_body body = {
        .snapshot = {.epoch = care->epoch, .after = id >= 0 ? sim.ids[id].key : 0}};
    bus_call(node, MESSAGE_SNAPSHOT, &body, 0);
}

static void run_tell(uint8_t node)
{
    const struct sim_connection *connection = &sim.nodes[node].connection;
    union sim_body body = {.armed = {.epoch = at(node)->care.epoch}};
    if (!connection->up) {
        const struct reserve_care_event event = {.kind = RESERVE_CARE_TOLD};
        feed(node, &event, NULL);
        return;
    }
    memcpy(body.armed.run_id, connection->run_id, sizeof body.armed.run_id);
    memcpy(body.armed.replication_id, at(node)->care.replication_id,
           sizeof body.armed.replication_id);
    bus_call(node, MESSAGE_ARMED, &body, 0);
}

/* ---- the core's wishes ---- */

static void run_look(uint8_t node)
{
    struct reserve_call call;
    reserve_call_look(&call, sim_keys(at(node)->view.epoch));
    gate_call(node, &call, USE_LOOK, 0);
}

static void act(uint8_t node, enum reserve_care_action action, const struct ledger_page *page)
{
    switch (action) {
    case RESERVE_CARE_DO_LOOK:
        run_look(node);
        break;
    case RESERVE_CARE_DO_PUBLISH:
        break;
    case RESERVE_CARE_DO_PAUSE:
        reserve_write_pauses(node);
        break;
    case RESERVE_CARE_DO_LIFT:
        lift_pauses(node);
        break;
    case RESERVE_CARE_DO_DOUBT:
        reserve_close_gate(node, sim_new_pause(), "doubt");
        break;
    case RESERVE_CARE_DO_BEGIN:
    case RESERVE_CARE_DO_FINISH:
    case RESERVE_CARE_DO_ARM:
        run_step(node, action);
        break;
    case RESERVE_CARE_DO_FETCH:
        run_fetch(node);
        break;
    case RESERVE_CARE_DO_PAGE:
        run_page(node, page);
        break;
    case RESERVE_CARE_DO_TELL:
        run_tell(node);
        break;
    }
}

static void feed(uint8_t node, const struct reserve_care_event *event,
                 const struct ledger_page *page)
{
    enum reserve_care_action actions[RESERVE_CARE_ACTIONS_MAX];
    const struct reserve_care_view view = view_of(node);
    const size_t count = reserve_care_step(&at(node)->care, &view, event, actions);
    for (size_t i = 0; i < count; i++) {
        if (sim_dies(node)) {
            return;
        }
        act(node, actions[i], page);
    }
}

void reserve_care_turn(uint8_t node)
{
    const struct reserve_care_event event = {.kind = RESERVE_CARE_TICK};
    if (at(node)->stated) {
        feed(node, &event, NULL);
    }
}

static void looked(uint8_t node, const struct reserve_answer *answer)
{
    struct reserve_look look;
    const bool read = reserve_answer_look(answer, &look);
    const struct reserve_care_event event = {
        .kind = RESERVE_CARE_LOOKED,
        .look = read ? &look : NULL,
        .broken = !read && (answer->ending == RESERVE_BROKEN || answer->ending == RESERVE_ENDED)};
    feed(node, &event, NULL);
}

/* "armed RUN_ID REPLICATION_ID" on this very Redis. */
static bool armed_here(uint8_t node, const struct reserve_answer *answer, char out_replication[41])
{
    const struct sim_connection *connection = &sim.nodes[node].connection;
    return answer->ending == RESERVE_ENDED && connection->up &&
           reserve_word_is(answer, 0, "armed") && reserve_word_is(answer, 1, connection->run_id) &&
           reserve_word_copy(answer, 2, out_replication, 41);
}

void reserve_care_answered(uint8_t node, const struct sim_gate_call *call)
{
    static const struct {
        enum reserve_care_event_kind kind;
        const char *word;
    } steps[] = {[USE_BEGIN] = {RESERVE_CARE_BEGUN, "begun"},
                 [USE_PAGE] = {RESERVE_CARE_PAGED, "loaded"},
                 [USE_FINISH] = {RESERVE_CARE_FINISHED, "verified"},
                 [USE_ARM] = {RESERVE_CARE_ARMED, "armed"}};
    char replication_id[41];
    if (call->use == USE_LOOK) {
        looked(node, &call->answer);
        return;
    }
    struct reserve_care_event event = {.kind = steps[call->use].kind,
                                       .result = RESERVE_RESULT_FAILED,
                                       .replication_id = replication_id};
    const bool armed = armed_here(node, &call->answer, replication_id);
    if (call->use == USE_BEGIN && armed) {
        event.result = RESERVE_RESULT_ARMED_ALREADY;
    } else if (call->answer.ending == RESERVE_ENDED &&
               reserve_word_is(&call->answer, 0, steps[call->use].word) &&
               (call->use != USE_ARM || armed)) {
        event.result = RESERVE_RESULT_DONE;
    }
    feed(node, &event, NULL);
}

void reserve_care_replied(uint8_t node, const struct sim_packet *packet)
{
    const struct ledger_page *page = &packet->body.page;
    struct reserve_care_event event = {.kind = RESERVE_CARE_TOLD, .result = RESERVE_RESULT_FAILED};
    if (packet->kind == MESSAGE_SNAPSHOT) {
        event.kind = RESERVE_CARE_FETCHED;
        if (!packet->no_answer && page->reason == TG_REASON_NONE) {
            event.result = RESERVE_RESULT_DONE;
            event.rows = page->count;
            event.end = page->end;
            event.after = page->count > 0 ? sim.ids[page->rows[page->count - 1].id].text : "";
        }
    } else if (packet->kind != MESSAGE_ARMED) {
        return;
    }
    feed(node, &event, page);
}
