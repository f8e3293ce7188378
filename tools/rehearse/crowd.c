/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/crowd.h"

#include "lib/io/now.h"
#include "lib/pure/text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BOARD_FRESH_TICKS = 1000 / REHEARSE_TICK_MS,
    TRIES_MAX = 100,
    DOORS_MS = 30000,
    KNOCK_MS = 200
};

#define NOBODY UINT32_MAX

static void act(struct rehearse_crowd *crowd, uint32_t buyer, struct rehearse_action action);

static uint32_t dice(void)
{
    uint32_t bits;
    tg_random(&bits, sizeof(bits));
    return bits;
}

static uint32_t since_begin_ms(const struct rehearse_crowd *crowd, uint64_t us)
{
    return us > crowd->begun_us ? (uint32_t)((us - crowd->begun_us) / 1000) : 0;
}

static void ask(struct rehearse_crowd *crowd, uint32_t buyer, enum rehearse_ask what, bool drop)
{
    const struct rehearse_request request = {.buyer = buyer,
                                             .ask = (uint8_t)what,
                                             .attempt = crowd->people[buyer].buyer.attempt,
                                             .drop = drop};
    crowd->totals.asked[what]++;
    crowd->people[buyer].outstanding++;
    rehearse_client_ask(what == REHEARSE_ASK_CONFIRM ? crowd->shop : crowd->client, &request);
}

static const char *entrant_of(const struct rehearse_crowd *crowd, uint32_t buyer)
{
    uint32_t ticket = crowd->people[buyer].ticket;
    return ticket != 0 ? rehearse_tickets_entrant(&crowd->tickets, ticket) : "";
}

/* Keeps the counts by state true across a step of a core. */
static void count_step(struct rehearse_crowd *crowd, uint8_t before, uint8_t after)
{
    crowd->totals.by_state[before]--;
    crowd->totals.by_state[after]++;
    crowd->ended += rehearse_ended((enum rehearse_state)after);
    crowd->ended -= rehearse_ended((enum rehearse_state)before);
}

static void show_board(struct rehearse_crowd *crowd, uint32_t buyer,
                       const struct rehearse_board *board)
{
    struct rehearse_buyer *state = &crowd->people[buyer].buyer;
    uint8_t before = state->state;
    struct rehearse_action action =
        rehearse_see_board(state, board, entrant_of(crowd, buyer), dice());
    count_step(crowd, before, state->state);
    act(crowd, buyer, action);
}

/* A look at the board: from the cache while it is fresh; else everybody waits for the one request
 * the cache makes. */
static void look_at_board(struct rehearse_crowd *crowd, uint32_t buyer)
{
    uint32_t number = buyer % crowd->options->caches;
    struct rehearse_cache *cache = &crowd->caches[number];
    if (!cache->fetching && crowd->wheel.now < cache->fresh_until) {
        crowd->totals.boards_from_cache++;
        show_board(crowd, buyer, &cache->board);
        return;
    }
    crowd->people[buyer].next = cache->first;
    cache->first = buyer;
    if (!cache->fetching) {
        cache->fetching = true;
        crowd->totals.asked[REHEARSE_ASK_BOARD]++;
        const struct rehearse_request request = {.buyer = number, .ask = REHEARSE_ASK_BOARD};
        rehearse_client_ask(crowd->fetch, &request);
    }
}

static void forget_session(struct rehearse_person *person)
{
    free(person->session);
    person->session = NULL;
}

static void act(struct rehearse_crowd *crowd, uint32_t buyer, struct rehearse_action action)
{
    struct rehearse_person *person = &crowd->people[buyer];
    switch (action.what) {
    case REHEARSE_DO_NOTHING:
        break;
    case REHEARSE_DO_SLEEP:
        person->due = rehearse_wheel_add(&crowd->wheel, buyer, action.sleep_ms);
        break;
    case REHEARSE_DO_TICKET:
        ask(crowd, buyer, REHEARSE_ASK_TICKET, false);
        break;
    case REHEARSE_DO_BOARD:
        look_at_board(crowd, buyer);
        break;
    case REHEARSE_DO_STATUS:
        ask(crowd, buyer, REHEARSE_ASK_STATUS, false);
        break;
    case REHEARSE_DO_RESERVE_TWICE:
        crowd->totals.duplicates++;
        ask(crowd, buyer, REHEARSE_ASK_RESERVE, false);
        ask(crowd, buyer, REHEARSE_ASK_RESERVE, false);
        break;
    case REHEARSE_DO_RESERVE:
        crowd->totals.duplicates += (crowd->people[buyer].buyer.plan & REHEARSE_REPEATING) != 0;
        ask(crowd, buyer, REHEARSE_ASK_RESERVE, false);
        break;
    case REHEARSE_DO_RESERVE_AND_DROP:
        crowd->totals.duplicates++;
        ask(crowd, buyer, REHEARSE_ASK_RESERVE, true);
        break;
    case REHEARSE_DO_CONFIRM:
        ask(crowd, buyer, REHEARSE_ASK_CONFIRM, false);
        break;
    case REHEARSE_DO_END:
        person->due = 0;
        if (person->outstanding == 0) {
            forget_session(person);
        }
        break;
    }
}

static void wake(struct rehearse_crowd *crowd, struct rehearse_sleeper sleeper)
{
    struct rehearse_person *person = &crowd->people[sleeper.buyer];
    if (person->due != sleeper.due) {
        return; /* he was told something meanwhile */
    }
    person->due = 0;
    uint8_t before = person->buyer.state;
    struct rehearse_action action = rehearse_wake(&person->buyer);
    count_step(crowd, before, person->buyer.state);
    act(crowd, sleeper.buyer, action);
}

/* What a look at the board costs is the way to the person in memory: that of the whole bed is asked
 * for before the first one wakes. */
static void wake_bed(void *context, const struct rehearse_sleeper *due, uint32_t count)
{
    struct rehearse_crowd *crowd = context;
    for (uint32_t i = 0; i < count; i++) {
        const struct rehearse_person *person = &crowd->people[due[i].buyer];
        __builtin_prefetch(&person->buyer);
        __builtin_prefetch(&person->session);
    }
    for (uint32_t i = 0; i < count; i++) {
        wake(crowd, due[i]);
    }
}

static enum rehearse_told told_of(const struct rehearse_answer *answer)
{
    if (answer->heard == REHEARSE_HEARD_REFUSED) {
        return answer->reason != TG_REASON_SOLD_OUT ? REHEARSE_TOLD_OTHER
               : answer->final                      ? REHEARSE_TOLD_FINAL
                                                    : REHEARSE_TOLD_SOLD_OUT;
    }
    if (answer->said == REHEARSE_SAID_SOLD_OUT) {
        return REHEARSE_TOLD_FINAL;
    }
    switch (answer->ask) {
    case REHEARSE_ASK_RESERVE:
        return REHEARSE_TOLD_HELD;
    case REHEARSE_ASK_CONFIRM:
        return REHEARSE_TOLD_CONFIRMED;
    case REHEARSE_ASK_STATUS:
        return answer->said == REHEARSE_SAID_WAITING || answer->said == REHEARSE_SAID_ADMITTED
                   ? REHEARSE_TOLD_WAIT
                   : REHEARSE_TOLD_OTHER;
    case REHEARSE_ASK_TICKET:
    case REHEARSE_ASK_BOARD:
    case REHEARSE_ASK_COUNT:
        break;
    }
    return REHEARSE_TOLD_OTHER;
}

static uint32_t item_number(const struct rehearse_sale *sale, const char *sku)
{
    for (uint32_t i = 0; sku != NULL && i < sale->item_count; i++) {
        if (strcmp(sale->items[i].sku, sku) == 0) {
            return i;
        }
    }
    return 0;
}

static void take_id(const char *reservation, uint8_t out_id[16])
{
    if (tg_base32_id_decode(reservation + strlen("res_"), TG_BASE32_ID_LENGTH, out_id) != 0) {
        memset(out_id, 0, 16); /* matches no row: the referee finds it */
    }
}

/* The referee's row of one answer. */
static void remember(struct rehearse_crowd *crowd, const struct rehearse_reply *reply,
                     const struct rehearse_answer *answer, const struct rehearse_details *details)
{
    if (answer->heard == REHEARSE_HEARD_NOTHING ||
        (answer->ask == REHEARSE_ASK_TICKET && answer->said != REHEARSE_SAID_SOLD_OUT)) {
        return;
    }
    const struct rehearse_session *session = crowd->people[reply->request.buyer].session;
    struct rehearse_seen seen = {.buyer = reply->request.buyer,
                                 .sent_ms = since_begin_ms(crowd, reply->sent_us),
                                 .answered_ms = since_begin_ms(crowd, reply->answered_us),
                                 .ask = reply->request.ask,
                                 .told = (uint8_t)told_of(answer),
                                 .attempt = reply->request.attempt,
                                 .replayed = reply->replayed};
    if (seen.told == REHEARSE_TOLD_HELD) {
        seen.item = item_number(crowd->sale, details->sku);
        seen.unit = details->unit >= 0 ? (uint32_t)details->unit : UINT32_MAX;
        take_id(details->reservation, seen.reservation);
    } else if (seen.told == REHEARSE_TOLD_CONFIRMED && session != NULL) {
        take_id(session->reservation, seen.reservation);
    }
    rehearse_log_add(&crowd->log, &seen);
}

static void keep_pass(struct rehearse_person *person, const char *pass)
{
    size_t bytes = strlen(pass) + 1;
    struct rehearse_session *session = calloc(1, sizeof(*session) + bytes);
    if (session == NULL) {
        abort();
    }
    memcpy(session->pass, pass, bytes);
    free(person->session);
    person->session = session;
}

/* What the buyer puts in his pocket. */
static void keep(struct rehearse_crowd *crowd, const struct rehearse_reply *reply,
                 const struct rehearse_answer *answer, const struct rehearse_details *details)
{
    struct rehearse_person *person = &crowd->people[reply->request.buyer];
    struct rehearse_totals *totals = &crowd->totals;
    if (answer->heard != REHEARSE_HEARD_DONE) {
        return;
    }
    if (answer->ask == REHEARSE_ASK_TICKET && details->token != NULL) {
        totals->tickets += person->ticket == 0;
        person->ticket = rehearse_tickets_keep(&crowd->tickets, details->token, details->entrant);
    } else if (answer->said == REHEARSE_SAID_ADMITTED) {
        totals->passes += !person->has_pass;
        person->has_pass = true;
        keep_pass(person, details->pass);
    } else if (answer->ask == REHEARSE_ASK_RESERVE) {
        uint32_t second = since_begin_ms(crowd, reply->answered_us) / 1000;
        totals->replays += reply->replayed;
        if (!person->has_won && second < REHEARSE_SECONDS_MAX) {
            totals->holds_by_second[second]++;
        }
        totals->holds += !person->has_won;
        person->has_won = true;
        if (person->session != NULL) {
            memcpy(person->session->reservation, details->reservation,
                   sizeof(person->session->reservation));
        }
    } else if (answer->ask == REHEARSE_ASK_CONFIRM) {
        totals->confirms++;
    }
}

static void count_5xx(struct rehearse_totals *totals, const struct rehearse_reply *reply)
{
    if (reply->status >= 500) {
        totals->status_5xx++;
        totals->status_5xx_of[reply->request.ask]++;
    }
}

static void measure(struct rehearse_crowd *crowd, const struct rehearse_reply *reply,
                    const struct rehearse_answer *answer)
{
    struct rehearse_totals *totals = &crowd->totals;
    uint64_t took_us = reply->answered_us - reply->sent_us;
    tg_histogram_add(&totals->queue, reply->sent_us - reply->request.asked_us);
    count_5xx(totals, reply);
    totals->unreadable += reply->status != 0 && answer->heard == REHEARSE_HEARD_NOTHING;
    if (answer->heard == REHEARSE_HEARD_REFUSED) {
        totals->refused[answer->reason]++;
        return;
    }
    if (answer->heard == REHEARSE_HEARD_NOTHING) {
        return;
    }
    switch (answer->ask) {
    case REHEARSE_ASK_TICKET:
        tg_histogram_add(&totals->ticket, took_us);
        break;
    case REHEARSE_ASK_STATUS:
        tg_histogram_add(&totals->status, took_us);
        break;
    case REHEARSE_ASK_RESERVE:
        tg_histogram_add(&totals->hold, took_us);
        break;
    case REHEARSE_ASK_CONFIRM:
        tg_histogram_add(&totals->confirm, took_us);
        break;
    case REHEARSE_ASK_BOARD:
    case REHEARSE_ASK_COUNT:
        break;
    }
}

/* A cache's fetch came back: the new board, or the old one a while longer (stale-if-error). */
static void take_board(struct rehearse_crowd *crowd, const struct rehearse_reply *reply)
{
    struct rehearse_cache *cache = &crowd->caches[reply->request.buyer];
    struct tg_wall made = {0};
    bool good = rehearse_read_board(reply, &cache->board, &made);
    cache->fetching = false;
    cache->fresh_until = crowd->wheel.now + BOARD_FRESH_TICKS;
    crowd->totals.boards_from_origin++;
    count_5xx(&crowd->totals, reply);
    crowd->totals.unreadable += reply->status == 200 && !good;
    if (good) {
        enum rehearse_phase phase = cache->board.phase;
        struct rehearse_seen seen = {.buyer = NOBODY,
                                     .sent_ms = since_begin_ms(crowd, reply->sent_us),
                                     .answered_ms = since_begin_ms(crowd, reply->answered_us),
                                     .ask = REHEARSE_ASK_BOARD,
                                     .told = phase == REHEARSE_PHASE_SOLD_OUT ? REHEARSE_TOLD_FINAL
                                             : phase == REHEARSE_PHASE_OPEN   ? REHEARSE_TOLD_WAIT
                                                                            : REHEARSE_TOLD_OTHER};
        int64_t age_ms = tg_now_wall().ms - made.ms;
        seen.age_ms = made.ms > 0 && age_ms > 0 && age_ms < 60000 ? (uint32_t)age_ms : 0;
        rehearse_log_add(&crowd->log, &seen);
    }
    uint32_t buyer = cache->first;
    cache->first = NOBODY;
    while (buyer != NOBODY) {
        uint32_t next = crowd->people[buyer].next;
        show_board(crowd, buyer, &cache->board);
        buyer = next;
    }
}

static void begin(struct rehearse_crowd *crowd);

/* Before the run: the answer to a knock. It counts for nothing; its buyer comes again like
 * everybody. */
static void on_knock_answered(struct rehearse_crowd *crowd, const struct rehearse_reply *reply)
{
    struct rehearse_answer answer;
    struct rehearse_details details;
    rehearse_read_answer(reply, &answer, &details);
    rehearse_details_free(&details);
    if (answer.heard == REHEARSE_HEARD_DONE) {
        begin(crowd);
    }
}

static void on_reply(void *context, const struct rehearse_reply *reply)
{
    struct rehearse_crowd *crowd = context;
    if (!crowd->doors_open) {
        on_knock_answered(crowd, reply);
        return;
    }
    if (reply->request.ask == REHEARSE_ASK_BOARD) {
        take_board(crowd, reply);
        return;
    }
    struct rehearse_answer answer;
    struct rehearse_details details;
    uint32_t buyer = reply->request.buyer;
    struct rehearse_buyer *state = &crowd->people[buyer].buyer;
    rehearse_read_answer(reply, &answer, &details);
    measure(crowd, reply, &answer);
    keep(crowd, reply, &answer, &details);
    remember(crowd, reply, &answer, &details);
    rehearse_details_free(&details);
    crowd->people[buyer].outstanding--;
    uint8_t before = state->state;
    struct rehearse_action action = rehearse_hear(state, &answer, &crowd->rules, dice());
    count_step(crowd, before, state->state);
    act(crowd, buyer, action);
    if (rehearse_ended((enum rehearse_state)state->state) &&
        crowd->people[buyer].outstanding == 0) {
        forget_session(&crowd->people[buyer]);
    }
}

/* 80 % evenly within arrive_s, the rest evenly within the next two such spans. */
static uint64_t expected_by(const struct rehearse_crowd *crowd, uint64_t now_ms)
{
    uint64_t buyers = crowd->options->buyers;
    uint64_t first = buyers - buyers / 5;
    uint64_t span_ms = (uint64_t)crowd->options->arrive_s * 1000;
    if (now_ms < span_ms) {
        return first * now_ms / span_ms;
    }
    uint64_t later_ms = now_ms - span_ms;
    return later_ms < REHEARSE_TRAILING * span_ms
               ? first + (buyers - first) * later_ms / (REHEARSE_TRAILING * span_ms)
               : buyers;
}

static void let_arrive(struct rehearse_crowd *crowd, uint64_t now_ms)
{
    uint64_t expected = expected_by(crowd, now_ms);
    while (crowd->arrived < expected) {
        uint32_t buyer = crowd->arrived++;
        uint64_t plan_dice = (uint64_t)dice() << 32 | dice();
        uint8_t plan = rehearse_draw_plan(plan_dice, crowd->options->abandon_percent,
                                          crowd->options->duplicate_percent);
        struct rehearse_action action = rehearse_arrive(&crowd->people[buyer].buyer, plan);
        count_step(crowd, REHEARSE_ABSENT, crowd->people[buyer].buyer.state);
        act(crowd, buyer, action);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct rehearse_crowd *crowd = timer->data;
    uint32_t now_ms = since_begin_ms(crowd, tg_now_us());
    struct rehearse_client_counts counts;
    rehearse_client_counts(crowd->client, &counts);
    rehearse_strain_add(&crowd->strain, now_ms - crowd->wheel.now * REHEARSE_TICK_MS,
                        (uint32_t)(counts.waited_us / 1000));
    let_arrive(crowd, now_ms);
    while (crowd->wheel.now < now_ms / REHEARSE_TICK_MS) {
        rehearse_wheel_turn(&crowd->wheel, wake_bed, crowd);
        if (crowd->wheel.now % (1000 / REHEARSE_TICK_MS) == 0) {
            rehearse_progress(crowd);
        }
    }
    bool late = now_ms / 1000 >= crowd->options->limit_s;
    if (crowd->ended == crowd->options->buyers || late) {
        crowd->finished = !late || crowd->ended == crowd->options->buyers;
        uv_timer_stop(timer);
        uv_stop(crowd->loop);
    }
}

static int prepare(struct rehearse_crowd *crowd)
{
    uint32_t buyers = crowd->options->buyers;
    crowd->people = calloc(buyers, sizeof(*crowd->people));
    if (crowd->people == NULL) {
        return -ENOMEM;
    }
    uint8_t random[REHEARSE_RUN_TAG_LENGTH / 2];
    tg_random(random, sizeof(random));
    tg_hex_encode(random, sizeof(random), crowd->tag);
    crowd->totals.by_state[REHEARSE_ABSENT] = buyers;
    crowd->rules =
        (struct rehearse_rules){.pay_ms = (uint32_t)crowd->options->pay_ms, .tries_max = TRIES_MAX};
    for (uint32_t i = 0; i < REHEARSE_CACHES_MAX; i++) {
        crowd->caches[i].first = NOBODY;
    }
    struct rehearse_client_spec spec = {.loop = crowd->loop,
                                        .edges = crowd->options->edges,
                                        .edge_count = crowd->options->edge_count,
                                        .connections = crowd->options->connections,
                                        .write = rehearse_crowd_write,
                                        .reply = on_reply,
                                        .context = crowd};
    int error = rehearse_client_open(&spec, &crowd->client);
    spec.connections = REHEARSE_SHOP_CONNECTIONS;
    if (error == 0) {
        error = rehearse_client_open(&spec, &crowd->shop);
    }
    spec.connections = crowd->options->caches;
    return error != 0 ? error : rehearse_client_open(&spec, &crowd->fetch);
}

static void knock(uv_timer_t *timer)
{
    struct rehearse_crowd *crowd = timer->data;
    if (tg_now_us() - crowd->begun_us > DOORS_MS * UINT64_C(1000)) {
        uv_timer_stop(timer);
        uv_stop(crowd->loop);
        return;
    }
    const struct rehearse_request request = {.ask = REHEARSE_ASK_TICKET};
    rehearse_client_ask(crowd->client, &request);
}

static void begin(struct rehearse_crowd *crowd)
{
    crowd->doors_open = true;
    crowd->begun_us = tg_now_us();
    crowd->begun = tg_now_wall();
    rehearse_announce(crowd);
    int error = uv_timer_start(&crowd->timer, on_tick, REHEARSE_TICK_MS, REHEARSE_TICK_MS);
    assert(error == 0); /* the timer is ours and the callback is there */
    (void)error;
}

int rehearse_crowd_run(struct rehearse_crowd *crowd)
{
    int error = prepare(crowd);
    if (error != 0) {
        return error;
    }
    crowd->begun_us = tg_now_us();
    uv_timer_init(crowd->loop, &crowd->timer);
    crowd->timer.data = crowd;
    error = uv_timer_start(&crowd->timer, knock, 0, KNOCK_MS);
    if (error == 0) {
        uv_run(crowd->loop, UV_RUN_DEFAULT);
    }
    if (error == 0 && !crowd->doors_open) {
        fprintf(stderr, "rehearse: the edge gives no tickets for this sale\n");
        error = TG_ERR_TIMEOUT;
    }
    return error;
}

void rehearse_crowd_hang_up(struct rehearse_crowd *crowd)
{
    crowd->client = rehearse_client_free(crowd->client);
    crowd->shop = rehearse_client_free(crowd->shop);
    crowd->fetch = rehearse_client_free(crowd->fetch);
}

void rehearse_crowd_free(struct rehearse_crowd *crowd)
{
    rehearse_crowd_hang_up(crowd);
    for (uint32_t i = 0; crowd->people != NULL && i < crowd->options->buyers; i++) {
        free(crowd->people[i].session);
    }
    free(crowd->people);
    crowd->people = NULL;
    rehearse_tickets_clear(&crowd->tickets);
    rehearse_wheel_clear(&crowd->wheel);
    rehearse_log_clear(&crowd->log);
    uv_close((uv_handle_t *)&crowd->timer, NULL);
}
