// SPDX-License-Identifier: Apache-2.0
#include "services/queue/draw.h"

#include "lib/io/keys.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/queue/keeper.h"
#include "services/queue/wire.h"
#include "tidegate/v1/ledger.pb-c.h"

#include <stdio.h>
#include <string.h>

enum { RETRY_MS = 250 };

static void advance(struct queue_draws *draws, size_t index);

static struct tg_bus *bus_of(const struct queue_draws *draws)
{
    return tg_app_bus(draws->brains->app);
}

/* Tells those whose entrants are stored; with a reason, all. */
static void tell_waiting(struct queue_keeper *keeper, enum tg_reason reason)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < keeper->waiting_count; i++) {
        if (reason != TG_REASON_NONE || keeper->waiting[i].until <= keeper->flushed) {
            tg_bus_reply_reason(keeper->waiting[i].incoming, tg_reason_code(reason));
        } else {
            keeper->waiting[kept++] = keeper->waiting[i];
        }
    }
    keeper->waiting_count = kept;
}

static void drop(struct queue_draws *draws, size_t index)
{
    if (draws->keepers[index] != NULL) {
        tell_waiting(draws->keepers[index], TG_REASON_NOT_MINE);
        draws->keepers[index] = queue_keeper_free(draws->keepers[index]);
    }
}

/* ---- the ledger ---- */

static void on_drawn(void *context, uint64_t token, int status, const ProtobufCMessage *message);

static void call(struct queue_draws *draws, size_t index, enum queue_draw_step step,
                 Tidegate__V1__DrawRequest *request)
{
    struct queue_keeper *keeper = draws->keepers[index];
    keeper->asked = step;
    const uint64_t token = (uint64_t)keeper->serial << 8 | index;
    request->sale = (char *)tg_brains_name(draws->brains, index);
    request->generation = keeper->generation;
    keeper->busy = tg_bus_call(bus_of(draws), TG_MESSAGE_LEDGER_DRAW, request->sale, &request->base,
                               "", TG_MAX_CALL_MS, on_drawn, draws, token) == 0;
    if (!keeper->busy) {
        keeper->retry_at.ms = tg_now_mono().ms + RETRY_MS;
    }
}

static void load(struct queue_draws *draws, size_t index)
{
    Tidegate__V1__DrawRequest request = TIDEGATE__V1__DRAW_REQUEST__INIT;
    request.step = TIDEGATE__V1__DRAW_STEP__DRAW_STEP_READ;
    request.first = draws->keepers[index]->stored;
    call(draws, index, QUEUE_DRAW_LOAD, &request);
}

static void store(struct queue_draws *draws, size_t index)
{
    uint8_t entrants[TG_MAX_ROSTER_PAGE][TG_ENTRANT_BYTES];
    Tidegate__V1__DrawRequest request = TIDEGATE__V1__DRAW_REQUEST__INIT;
    request.step = TIDEGATE__V1__DRAW_STEP__DRAW_STEP_APPEND;
    request.first = draws->keepers[index]->stored;
    request.entrants.len = queue_keeper_page(draws->keepers[index], entrants) * TG_ENTRANT_BYTES;
    request.entrants.data = entrants[0];
    call(draws, index, QUEUE_DRAW_STORE, &request);
}

static void freeze(struct queue_draws *draws, size_t index)
{
    struct queue_keeper *keeper = draws->keepers[index];
    Tidegate__V1__Draw draw = TIDEGATE__V1__DRAW__INIT;
    Tidegate__V1__DrawRequest request = TIDEGATE__V1__DRAW_REQUEST__INIT;
    request.step = TIDEGATE__V1__DRAW_STEP__DRAW_STEP_FREEZE;
    request.first = keeper->stored;
    request.draw = &draw;
    draw.count = keeper->roster.count;
    draw.index_at_open = draws->by_sale[index].index_at_open;
    draw.root = (ProtobufCBinaryData){.len = sizeof keeper->root, .data = keeper->root};
    call(draws, index, QUEUE_DRAW_FREEZE, &request);
}

static void reveal(struct queue_draws *draws, size_t index)
{
    struct queue_keeper *keeper = draws->keepers[index];
    struct tg_draw drawn = draws->by_sale[index].view.draw;
    Tidegate__V1__Draw draw = TIDEGATE__V1__DRAW__INIT;
    Tidegate__V1__DrawRequest request = TIDEGATE__V1__DRAW_REQUEST__INIT;
    memcpy(drawn.secret, keeper->secret, sizeof drawn.secret);
    tg_draw_mix(&drawn);
    request.step = TIDEGATE__V1__DRAW_STEP__DRAW_STEP_REVEAL;
    request.draw = &draw;
    draw.secret = (ProtobufCBinaryData){.len = sizeof drawn.secret, .data = drawn.secret};
    draw.beacon = (ProtobufCBinaryData){.len = drawn.beacon_length, .data = drawn.beacon};
    draw.seed = (ProtobufCBinaryData){.len = sizeof drawn.seed, .data = drawn.seed};
    call(draws, index, QUEUE_DRAW_REVEAL, &request);
}

/* The ledger has entrants we do not know of: somebody stored after we read. */
static void begin_again(struct queue_draws *draws, size_t index)
{
    struct queue_keeper *keeper = draws->keepers[index];
    if (keeper->state.closing) {
        drop(draws, index); /* what is closed takes nobody in: all is read anew */
    } else {
        keeper->state.loaded = false;
    }
}

static void take_page(struct queue_keeper *keeper, const Tidegate__V1__DrawReply *reply)
{
    const uint32_t count = (uint32_t)(reply->entrants.len / TG_ENTRANT_BYTES);
    if (count == 0) {
        keeper->state.loaded = reply->stored == keeper->stored;
        return;
    }
    if (queue_keeper_loaded(keeper, reply->entrants.data, count) != 0) {
        tg_log(TG_LOG_ERROR, "queue.roster_full", TG_NUMBER_FIELD("entrants", keeper->stored));
        keeper->retry_at.ms = tg_now_mono().ms + RETRY_MS;
    }
}

static void take_reply(struct queue_draws *draws, size_t index,
                       const Tidegate__V1__DrawReply *reply)
{
    struct queue_keeper *keeper = draws->keepers[index];
    enum tg_reason reason = tg_reason_from_code(reply->reason);
    if (reason == TG_REASON_GAP) {
        begin_again(draws, index);
        return;
    }
    if (reason == TG_REASON_NONE && keeper->asked == QUEUE_DRAW_STORE) {
        queue_keeper_flushed(keeper);
        tell_waiting(keeper, TG_REASON_NONE);
    } else if (reason == TG_REASON_NONE && keeper->asked == QUEUE_DRAW_LOAD) {
        take_page(keeper, reply);
    } else {
        keeper->retry_at.ms = tg_now_mono().ms + RETRY_MS; /* the state will tell the rest */
    }
}

static void on_drawn(void *context, uint64_t token, int status, const ProtobufCMessage *message)
{
    struct queue_draws *draws = context;
    const size_t index = token & 0xff;
    struct queue_keeper *keeper = draws->keepers[index];
    if (keeper == NULL || keeper->serial != token >> 8) {
        return;
    }
    keeper->busy = false;
    if (status != 0) {
        keeper->retry_at.ms = tg_now_mono().ms + RETRY_MS;
    } else {
        take_reply(draws, index, (const Tidegate__V1__DrawReply *)message);
    }
    advance(draws, index);
}

/* ---- closing ---- */

static void on_slice(uv_idle_t *slices)
{
    struct queue_draws *draws = slices->data;
    bool more = false;
    for (size_t i = 0; i < TG_MAX_SALES; i++) {
        struct queue_keeper *keeper = draws->keepers[i];
        if (keeper == NULL || !keeper->state.closing || keeper->state.closed) {
            continue;
        }
        if (!queue_keeper_close(keeper)) {
            more = true;
            continue;
        }
        tg_log(TG_LOG_INFO, "queue.roster_closed",
               TG_TEXT_FIELD("sale", tg_brains_name(draws->brains, i)),
               TG_NUMBER_FIELD("entrants", keeper->roster.count));
        advance(draws, i);
    }
    if (!more) {
        uv_idle_stop(slices);
    }
}

static void close_roster(struct queue_draws *draws, size_t index)
{
    if (!draws->keepers[index]->state.closing) {
        draws->keepers[index]->state.closed = queue_keeper_close(draws->keepers[index]);
    }
    (void)uv_idle_start(&draws->slices, on_slice);
}

/* ---- one sale ---- */

static void advance(struct queue_draws *draws, size_t index)
{
    struct queue_keeper *keeper = draws->keepers[index];
    const struct tg_mono now = tg_now_mono();
    if (keeper == NULL || keeper->busy || now.ms < keeper->retry_at.ms) {
        return;
    }
    switch (queue_draw_next(&draws->by_sale[index], now, &keeper->state)) {
    case QUEUE_DRAW_REST:
        break;
    case QUEUE_DRAW_LOAD:
        load(draws, index);
        break;
    case QUEUE_DRAW_STORE:
        store(draws, index);
        break;
    case QUEUE_DRAW_CLOSE:
        close_roster(draws, index);
        break;
    case QUEUE_DRAW_FREEZE:
        freeze(draws, index);
        break;
    case QUEUE_DRAW_REVEAL:
        reveal(draws, index);
        break;
    }
}

/* The file "draw-SALE" of the key folder, if it is what the commitment promised. */
static void read_secret(struct queue_draws *draws, struct queue_keeper *keeper,
                        const struct tg_sale *sale)
{
    char name[sizeof "draw-" + TG_MAX_SALE_NAME_BYTES];
    uint8_t commitment[TG_DRAW_BYTES];
    if (keeper->state.secret_known || keeper->complained) {
        return;
    }
    (void)snprintf(name, sizeof name, "draw-%s", sale->name);
    int error = tg_keys_secret(draws->keys_folder, name, keeper->secret);
    if (error == 0) {
        tg_draw_commit(keeper->secret, commitment);
        error = memcmp(commitment, sale->commitment, sizeof commitment) == 0 ? 0 : TG_ERR_FORGED;
    }
    keeper->state.secret_known = error == 0;
    keeper->complained = error != 0;
    if (error != 0) {
        tg_log(TG_LOG_ERROR, "queue.draw_secret", TG_TEXT_FIELD("sale", sale->name),
               TG_TEXT_FIELD("error", tg_error_text(error)));
    }
}

/* Still the roster of this sale and term, and, once that is known, the one that was frozen. */
static bool still_good(const struct queue_keeper *keeper, const struct queue_brain *brain)
{
    const struct tg_draw *draw = &brain->view.draw;
    if (!queue_draws(brain) || keeper->generation != brain->view.generation ||
        keeper->term != brain->term->number) {
        return false;
    }
    if (draw->frozen && keeper->state.closed &&
        memcmp(draw->root, keeper->root, sizeof keeper->root) != 0) {
        tg_log(TG_LOG_ERROR, "queue.roster_differs",
               TG_NUMBER_FIELD("entrants", keeper->roster.count),
               TG_NUMBER_FIELD("frozen", draw->count));
        return false;
    }
    return true;
}

void queue_draws_tick(struct queue_draws *draws, size_t index, const struct tg_sale *sale)
{
    const struct queue_brain *brain = &draws->by_sale[index];
    if (draws->keepers[index] != NULL && !still_good(draws->keepers[index], brain)) {
        drop(draws, index);
    }
    if (queue_draws(brain) && draws->keepers[index] == NULL) {
        draws->keepers[index] =
            queue_keeper_new(brain->view.generation, brain->term->number, ++draws->serial);
    }
    if (draws->keepers[index] != NULL) {
        read_secret(draws, draws->keepers[index], sale);
        advance(draws, index);
    }
}

/* ---- what edges ask ---- */

static struct queue_keeper *keeper_of(struct queue_draws *draws, const char *sale,
                                      uint64_t generation, size_t *out_index)
{
    int index = tg_brains_find(draws->brains, sale);
    struct queue_keeper *keeper = index >= 0 ? draws->keepers[index] : NULL;
    if (keeper == NULL || keeper->generation != generation ||
        !queue_draws(&draws->by_sale[index])) {
        return NULL;
    }
    *out_index = (size_t)index;
    return keeper;
}

static enum tg_reason enter(struct queue_draws *draws, size_t index,
                            const ProtobufCBinaryData *entrants, uint32_t count)
{
    struct queue_keeper *keeper = draws->keepers[index];
    const struct queue_brain *brain = &draws->by_sale[index];
    if (!queue_draw_takes(brain, &keeper->state)) {
        bool over = brain->view.draw.frozen || keeper->state.closing;
        return over ? TG_REASON_NOT_ALLOWED_NOW : TG_REASON_TRY_AGAIN;
    }
    if (keeper->waiting_count == TG_MAX_EDGES) {
        return TG_REASON_TRY_AGAIN;
    }
    int error = queue_keeper_enter(keeper, entrants->data, count);
    if (error != 0) {
        return error == TG_ERR_MALFORMED ? TG_REASON_MALFORMED : TG_REASON_TRY_AGAIN;
    }
    return TG_REASON_NONE;
}

static void on_roster(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_draws *draws = context;
    const Tidegate__V1__RosterRequest *request =
        (const Tidegate__V1__RosterRequest *)tg_bus_body(take_incoming);
    size_t index = 0;
    uint32_t count = 0;
    enum tg_reason reason = queue_wire_roster(tg_bus_sale(take_incoming), request, &count);
    struct queue_keeper *keeper = NULL;
    if (reason == TG_REASON_NONE) {
        keeper = keeper_of(draws, request->sale, request->generation, &index);
        reason =
            keeper == NULL ? TG_REASON_NOT_MINE : enter(draws, index, &request->entrants, count);
    }
    if (reason != TG_REASON_NONE) {
        tg_bus_reply_reason(take_incoming, tg_reason_code(reason));
        return;
    }
    keeper->waiting[keeper->waiting_count].incoming = take_incoming;
    keeper->waiting[keeper->waiting_count++].until = keeper->pushed;
    tell_waiting(keeper, TG_REASON_NONE); /* all of them may have been in it before */
    advance(draws, index);
}

static void on_part(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_draws *draws = context;
    const Tidegate__V1__PartRequest *request =
        (const Tidegate__V1__PartRequest *)tg_bus_body(take_incoming);
    Tidegate__V1__PartReply reply = TIDEGATE__V1__PART_REPLY__INIT;
    size_t index = 0;
    const struct queue_keeper *keeper =
        keeper_of(draws, tg_bus_sale(take_incoming), request->generation, &index);
    enum tg_reason reason = TG_REASON_NONE;
    if (keeper == NULL || !keeper->state.closed || !draws->by_sale[index].view.draw.frozen) {
        reason = TG_REASON_TRY_AGAIN;
    } else if (request->part >= TG_MAX_ROSTER_ENTRANTS ||
               request->part * TG_MAX_ROSTER_PART >= keeper->roster.count) {
        reason = TG_REASON_DRAW_UNKNOWN;
    } else {
        const uint64_t first = request->part * TG_MAX_ROSTER_PART;
        const uint64_t left = keeper->roster.count - first;
        reply.entrants.len =
            (left < TG_MAX_ROSTER_PART ? left : TG_MAX_ROSTER_PART) * TG_ENTRANT_BYTES;
        reply.entrants.data = keeper->roster.slots[first];
    }
    reply.reason = (char *)tg_reason_code(reason);
    tg_bus_reply(take_incoming, &reply.base);
}

/* ---- life ---- */

void queue_draws_begin(struct queue_draws *draws, struct tg_brains *brains,
                       struct queue_brain *by_sale, const char *keys_folder)
{
    draws->brains = brains;
    draws->by_sale = by_sale;
    draws->keys_folder = keys_folder;
    (void)uv_idle_init(tg_app_loop(brains->app), &draws->slices);
    draws->slices.data = draws;
}

int queue_draws_serve(struct queue_draws *draws)
{
    int error = tg_bus_serve(bus_of(draws), TG_MESSAGE_QUEUE_ROSTER, on_roster, draws);
    return error == 0 ? tg_bus_serve(bus_of(draws), TG_MESSAGE_QUEUE_PART, on_part, draws) : error;
}

void queue_draws_end(struct queue_draws *draws)
{
    for (size_t i = 0; i < TG_MAX_SALES; i++) {
        drop(draws, i);
    }
    if (!uv_is_closing((uv_handle_t *)&draws->slices)) {
        uv_close((uv_handle_t *)&draws->slices, NULL);
    }
}
