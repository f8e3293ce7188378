/* SPDX-License-Identifier: Apache-2.0
 * The memory twin against PostgreSQL: random operations on both, every answer compared. Holds of
 * the sale "long" never lapse, those of "brief" have lapsed by the next operation, so that two
 * clocks cannot disagree. One seed is one sequence: TIDEGATE_SEED repeats it. */
#include "tests/unit/private_postgres.h"

#include "lib/io/now.h"
#include "lib/io/pg.h"
#include "services/ledger/migrate.h"
#include "services/ledger/store_memory.h"
#include "services/ledger/store_pg.h"

#include <inttypes.h>

enum {
    OPERATIONS = 2500,
    IDS = 60,
    USERS = 6,
    UNITS = 8,
    PAYMENTS = 6,
    COMMANDS = 40,
    PAUSE_MS = 3
};

static uv_loop_t loop;
static uint64_t seed;

/* The answer of one store to the operation under way, as text: what is equal reads equal. Times are
 * left out. */
struct heard {
    bool told;
    int status;
    size_t length;
    char text[65536];
};
static struct heard from_pg, from_twin;
static int on_twin;                /* which store is being asked */
static struct ledger_sales listed; /* the last listing */

struct pair {
    struct tg_pg *pool;
    struct store_pg *pg;
    struct store_memory *twin;
};

__attribute__((format(printf, 2, 3))) static void say(struct heard *heard, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(heard->text + heard->length, sizeof heard->text - heard->length,
                                 format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && heard->length + (size_t)length < sizeof heard->text);
    heard->length += (size_t)length;
}

static void begin(struct heard *heard, int status)
{
    assert_false(heard->told);
    heard->told = true;
    heard->status = status;
    say(heard, "status %d\n", status);
}

static void say_units(struct heard *heard, const struct tg_unit_ref *units, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        say(heard, " %u:%u", units[i].item, units[i].unit);
    }
}

static void on_recorded(void *context, uint64_t token, int status,
                        const struct ledger_recorded *rows, uint32_t count)
{
    begin(context, status);
    for (uint32_t i = 0; status == 0 && i < count; i++) {
        say(context, "%u %s %d epoch %" PRIu64, rows[i].outcome, tg_reason_code(rows[i].reason),
            rows[i].state, rows[i].epoch);
        if (rows[i].outcome == LEDGER_ALREADY) {
            say_units(context, rows[i].units, rows[i].unit_count);
        }
        say(context, "\n");
    }
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void on_expired(void *context, uint64_t token, int status,
                       const struct ledger_verdicts *verdicts)
{
    char rows[2 * TG_MAX_PAGE][64];
    begin(context, status);
    if (status != 0) {
        return;
    }
    say(context, "%s epoch %" PRIu64 "\n", tg_reason_code(verdicts->reason), verdicts->epoch);
    for (uint32_t i = 0; i < verdicts->count; i++) {
        snprintf(rows[i], sizeof rows[i], "%s %d", verdicts->rows[i].id.text,
                 verdicts->rows[i].state);
    }
    qsort(rows, verdicts->count, sizeof rows[0], compare_text);
    for (uint32_t i = 0; i < verdicts->count; i++) {
        if (i == 0 || strcmp(rows[i], rows[i - 1]) != 0) {
            say(context, "%s\n", rows[i]);
        }
    }
}

static void on_obeyed(void *context, uint64_t token, int status, enum tg_reason reason,
                      uint32_t stored)
{
    begin(context, status);
    say(context, "%s %u\n", tg_reason_code(reason), stored);
}

static void on_due(void *context, uint64_t token, int status, const struct ledger_due *due)
{
    begin(context, status);
    say(context, "known %d\n", due->known);
    if (!due->known) {
        return;
    }
    say(context, "epoch %" PRIu64 " generation %" PRIu64 "\n", due->epoch, due->generation);
    for (uint32_t i = 0; i < due->lapsed_count; i++) {
        say(context, "lapsed %s\n", due->lapsed[i].text);
    }
    for (uint32_t i = 0; i < due->order_count; i++) {
        say(context, "order %d %s\n", due->kinds[i], due->orders[i].text);
    }
}

static void on_snapshot(void *context, uint64_t token, int status,
                        const struct ledger_snapshot *page)
{
    begin(context, status);
    say(context, "%s epoch %" PRIu64 "\n", tg_reason_code(page->reason), page->epoch);
    for (uint32_t i = 0; i < page->count; i++) {
        const struct ledger_snapshot_row *row = &page->rows[i];
        say(context, "%s %d %.*s window %" PRIu64 " place %u digest %u", row->id.text, row->state,
            (int)row->user_length, (const char *)row->user, row->window, row->place[0],
            row->digest[0]);
        say_units(context, row->units, row->unit_count);
        for (uint32_t j = 0; j < row->unit_count; j++) {
            say(context, " slot %u", row->slots[j]);
        }
        say(context, "\n");
    }
}

static void on_reason(void *context, uint64_t token, int status, enum tg_reason reason)
{
    begin(context, status);
    say(context, "%s\n", tg_reason_code(reason));
}

static void on_log_tail(void *context, uint64_t token, int status,
                        const struct ledger_log_tail *tail)
{
    begin(context, status);
    say(context, "%" PRIu64 " %u\n", tail->sequence, tail->hash[0]);
}

static void on_log_stored(void *context, uint64_t token, int status, enum tg_reason reason,
                          uint64_t stored_sequence)
{
    begin(context, status);
    say(context, "%s %" PRIu64 "\n", tg_reason_code(reason),
        reason == TG_REASON_STALE_EPOCH ? 0 : stored_sequence);
}

static void on_reservation(void *context, uint64_t token, int status,
                           const struct ledger_reservation *answer)
{
    begin(context, status);
    say(context, "%s sale %s state %d order %s payment %s replayed %d epoch %" PRIu64,
        tg_reason_code(answer->reason), answer->sale, answer->state, answer->order_id,
        answer->payment, answer->replayed, answer->epoch);
    say_units(context, answer->units, answer->unit_count);
    say(context, "\n");
}

static void on_sales(void *context, uint64_t token, int status, const struct ledger_sales *sales)
{
    begin(context, status);
    listed = *sales;
    for (uint32_t i = 0; i < sales->count; i++) {
        const struct tg_sale *sale = &sales->rows[i].sale;
        say(context,
            "%s generation %" PRIu64 " epoch %" PRIu64 " phase %d armed %d %s sequence %" PRIu64
            " clean %u pace %" PRIu64 " start %" PRIu64 " opens %" PRId64 " units %u order %s",
            sale->name, sale->generation, sale->epoch, sale->phase, sale->armed, sale->run_id,
            sale->control_sequence, sale->clean_rounds, sale->pace_milli, sale->pace_start_milli,
            sale->opens_at.ms, sale->items[0].units, sales->rows[i].order);
        for (uint32_t j = 0; j < sale->pause_count; j++) {
            say(context, " pause %s %s", sale->pauses[j].id, sale->pauses[j].cause);
        }
        for (uint32_t j = 0; j < sale->lifted_count; j++) {
            say(context, " lifted %s", sale->lifted[j]);
        }
        say(context, "\n");
    }
}

static void on_ticked(void *context, uint64_t token, int status, uint32_t changed)
{
    begin(context, status);
    say(context, "changed %u\n", changed);
}

static void on_judged(void *context, uint64_t token, int status,
                      const struct ledger_judgement *judgement)
{
    begin(context, status);
    say(context, "%s repeated %d\n", tg_reason_code(judgement->reason), judgement->repeated);
}

static int64_t marked[2][LEDGER_EVENTS_PAGE];
static uint32_t marked_count[2];

static void on_events(void *context, uint64_t token, int status, const struct ledger_event *events,
                      uint32_t count)
{
    static char rows[LEDGER_EVENTS_PAGE][512];
    begin(context, status);
    marked_count[on_twin] = count;
    for (uint32_t i = 0; i < count; i++) {
        marked[on_twin][i] = events[i].id;
        snprintf(rows[i], sizeof rows[i], "%s %s %s %s %.*s %u units %s %s %" PRId64 " %s %s",
                 events[i].message_id, events[i].sale, events[i].kind, events[i].reservation.text,
                 (int)events[i].user_length, (const char *)events[i].user, events[i].unit_count,
                 events[i].order_id, events[i].payment, events[i].amount_minor, events[i].currency,
                 strcmp(events[i].kind, "paused") == 0 ? "" : events[i].detail);
    }
    qsort(rows, count, sizeof rows[0], compare_text);
    for (uint32_t i = 0; i < count; i++) {
        say(context, "%s\n", rows[i]);
    }
}

static void on_published(void *context, uint64_t token, int status)
{
    begin(context, status);
}

static void on_health(void *context, uint64_t token, int status, const struct ledger_health *health)
{
    begin(context, status);
    say(context, "version %u writable %d\n", health->version, health->writable);
}

static struct ledger_answers answers_to(struct heard *heard)
{
    return (struct ledger_answers){.context = heard,
                                   .recorded = on_recorded,
                                   .expired = on_expired,
                                   .obeyed = on_obeyed,
                                   .due = on_due,
                                   .snapshot = on_snapshot,
                                   .armed = on_reason,
                                   .checked = on_reason,
                                   .log_tail = on_log_tail,
                                   .log_stored = on_log_stored,
                                   .reservation = on_reservation,
                                   .sales = on_sales,
                                   .ticked = on_ticked,
                                   .judged = on_judged,
                                   .events = on_events,
                                   .published = on_published,
                                   .health = on_health};
}

/* One operation of either store; `make` fills it from the choices, so both get the same. */
static uint64_t choice_state;

static uint32_t choose(uint32_t below)
{
    choice_state ^= choice_state << 13;
    choice_state ^= choice_state >> 7;
    choice_state ^= choice_state << 17;
    return (uint32_t)(choice_state >> 11) % below;
}

static const char *const sale_names[] = {"long", "brief", "none"};

static const char *some_sale(void)
{
    return sale_names[choose(16) == 0 ? 2 : choose(2)];
}

static struct ledger_id some_id(void)
{
    struct ledger_id id;
    snprintf(id.text, sizeof id.text, "res_%026u", choose(IDS));
    return id;
}

static void some_command_id(char out_id[TG_BASE32_ID_LENGTH + 1])
{
    snprintf(out_id, TG_BASE32_ID_LENGTH + 1, "%026u", 1000 + choose(COMMANDS));
}

static uint8_t some_user(uint8_t *out_user)
{
    return (uint8_t)snprintf((char *)out_user, TG_MAX_USER_BYTES, "user %u", choose(USERS));
}

/* What the operations are about at present, read from the twin's last listing. */
static uint64_t epochs[2] = {1, 1}, generations[2] = {1, 1}, sequences[2] = {1, 1};

static size_t place_of(const char *sale)
{
    return strcmp(sale, "brief") == 0 ? 1 : 0;
}

static uint64_t near(uint64_t value)
{
    return choose(12) == 0 ? value + 1 : choose(24) == 0 && value > 0 ? value - 1 : value;
}

static void make_hold(const char *sale, struct ledger_hold *out)
{
    memset(out, 0, sizeof *out);
    out->id = some_id();
    out->generation = near(generations[place_of(sale)]);
    out->epoch = near(epochs[place_of(sale)]);
    out->window = choose(100);
    out->place[0] = (uint8_t)choose(256);
    out->digest[0] = (uint8_t)choose(256);
    out->user_length = some_user(out->user);
    out->unit_count = 1 + choose(3);
    const uint32_t first = choose(UNITS), slot = choose(3);
    for (uint32_t i = 0; i < out->unit_count; i++) {
        out->units[i] = (struct tg_unit_ref){.item = choose(8) == 0 ? 1 : 0, .unit = first + i};
        out->slots[i] = slot + i;
    }
}

static int run_record(const struct ledger_store *store)
{
    static struct ledger_batch batch;
    memset(&batch, 0, sizeof batch);
    snprintf(batch.sale, sizeof batch.sale, "%s", some_sale());
    batch.count = 1 + choose(6);
    for (uint32_t i = 0; i < batch.count; i++) {
        make_hold(batch.sale, &batch.holds[i]);
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(batch.holds[j].id.text, batch.holds[i].id.text) == 0) {
                batch.count = i; /* the core never sends one id twice */
                break;
            }
        }
    }
    return store->record(store->self, &batch, 0);
}

static int run_expire(const struct ledger_store *store)
{
    static struct ledger_expire ask;
    memset(&ask, 0, sizeof ask);
    snprintf(ask.sale, sizeof ask.sale, "%s", some_sale());
    ask.generation = near(generations[place_of(ask.sale)]);
    ask.epoch = near(epochs[place_of(ask.sale)]);
    ask.id_count = choose(5);
    for (uint32_t i = 0; i < ask.id_count; i++) {
        ask.ids[i] = some_id();
    }
    ask.tombstone_count = choose(4) == 0 ? 1 : 0;
    for (uint32_t i = 0; i < ask.tombstone_count; i++) {
        ask.tombstones[i].id = some_id();
        ask.tombstones[i].user_length = some_user(ask.tombstones[i].user);
        ask.tombstones[i].window = choose(9);
    }
    return store->expire(store->self, &ask, 0);
}

static int run_obeyed(const struct ledger_store *store)
{
    static struct ledger_obeyed ask;
    memset(&ask, 0, sizeof ask);
    snprintf(ask.sale, sizeof ask.sale, "%s", some_sale());
    ask.epoch = near(epochs[place_of(ask.sale)]);
    ask.count = 1 + choose(6);
    const uint32_t first = choose(IDS);
    for (uint32_t i = 0; i < ask.count; i++) {
        snprintf(ask.ids[i].text, sizeof ask.ids[i].text, "res_%026u", (first + i) % IDS);
        ask.kinds[i] = choose(3) == 0 ? LEDGER_SETTLE : LEDGER_RELEASE;
    }
    return store->obeyed(store->self, &ask, 0);
}

static int run_due(const struct ledger_store *store)
{
    struct ledger_due_ask ask = {.limit = 1 + choose(20)};
    snprintf(ask.sale, sizeof ask.sale, "%s", some_sale());
    ask.orders_after = choose(2) == 0 ? (struct ledger_id){""} : some_id();
    ask.lapsed_after = choose(2) == 0 ? (struct ledger_id){""} : some_id();
    return store->due(store->self, &ask, 0);
}

static int run_snapshot(const struct ledger_store *store)
{
    struct ledger_snapshot_ask ask = {.limit = 1 + choose(TG_MAX_SNAPSHOT_PAGE)};
    snprintf(ask.sale, sizeof ask.sale, "%s", some_sale());
    ask.epoch = near(epochs[place_of(ask.sale)]);
    ask.after = choose(2) == 0 ? (struct ledger_id){""} : some_id();
    return store->snapshot(store->self, &ask, 0);
}

static int run_reservation(const struct ledger_store *store)
{
    static const enum ledger_verb verbs[] = {LEDGER_READ,    LEDGER_CONFIRM, LEDGER_CONFIRM,
                                             LEDGER_CONFIRM, LEDGER_EXTEND,  LEDGER_CANCEL};
    struct ledger_ask ask = {
        .verb = verbs[choose(COUNT_OF(verbs))], .id = some_id(), .service = true};
    if (ask.verb == LEDGER_READ || ask.verb == LEDGER_CANCEL) {
        ask.service = choose(2) == 0;
        ask.user_length = some_user(ask.user);
    }
    snprintf(ask.payment, sizeof ask.payment, "pay-%u", choose(PAYMENTS * 8));
    snprintf(ask.currency, sizeof ask.currency, "%s", choose(16) == 0 ? "USD" : "EUR");
    ask.amount_minor = 100 * (1 + (int64_t)choose(3));
    return store->reservation(store->self, &ask, 0);
}

static int run_armed(const struct ledger_store *store)
{
    struct ledger_armed ask = {0};
    snprintf(ask.sale, sizeof ask.sale, "%s", some_sale());
    ask.epoch = near(epochs[place_of(ask.sale)]);
    snprintf(ask.run_id, sizeof ask.run_id, "run-%u", choose(8) == 0);
    snprintf(ask.replication_id, sizeof ask.replication_id, "%s", "replication");
    return store->armed(store->self, &ask, 0);
}

static int run_check(const struct ledger_store *store)
{
    static const char *const outcomes[] = {"clean", "clean", "clean", "clean", "void", "alarm"};
    struct ledger_check ask = {.checked_ms = (int64_t)choose(200)};
    snprintf(ask.sale, sizeof ask.sale, "%s", some_sale());
    snprintf(ask.instance, sizeof ask.instance, "checker-%u", choose(3));
    snprintf(ask.outcome, sizeof ask.outcome, "%s", outcomes[choose(COUNT_OF(outcomes))]);
    ask.epoch = near(epochs[place_of(ask.sale)]);
    return store->check(store->self, &ask, 0);
}

static int run_log(const struct ledger_store *store)
{
    static struct ledger_log_page page;
    memset(&page, 0, sizeof page);
    snprintf(page.place.sale, sizeof page.place.sale, "%s", some_sale());
    page.place.epoch = near(epochs[place_of(page.place.sale)]);
    if (choose(2) == 0) {
        return store->log_tail(store->self, &page.place, 0);
    }
    page.tail.sequence = choose(3) * 2;
    page.count = 1 + choose(2);
    for (uint32_t i = 0; i < page.count; i++) {
        page.entries[i].sequence = page.tail.sequence + 1 + i + (choose(10) == 0);
        snprintf(page.entries[i].kind, sizeof page.entries[i].kind, "%s", "hold");
        page.entries[i].id = some_id();
        page.hashes[i][0] = (uint8_t)choose(256);
    }
    return store->log_append(store->self, &page, 0);
}

static int run_listing(const struct ledger_store *store)
{
    return store->sales(store->self, choose(2) == 0 ? "" : "brief",
                        choose(3) == 0 ? some_sale() : "", 0);
}

static int run_tick(const struct ledger_store *store)
{
    return store->tick(store->self, 0);
}

static int run_events(const struct ledger_store *store)
{
    return store->events(store->self, choose(4) == 0 ? "other" : "one", 0);
}

static void make_definition(const char *sale, struct ledger_command *out)
{
    struct tg_sale *made = &out->definition;
    const bool brief = strcmp(sale, "brief") == 0;
    made->item_count = 2;
    snprintf(made->items[0].sku, sizeof made->items[0].sku, "%s", "first");
    snprintf(made->items[1].sku, sizeof made->items[1].sku, "%s", "second");
    for (uint32_t i = 0; i < 2; i++) {
        made->items[i].units = i == 0 ? UNITS : 3;
        made->items[i].price_minor = 100;
        snprintf(made->items[i].currency, sizeof made->items[i].currency, "%s", "EUR");
    }
    snprintf(out->order, sizeof out->order, "%s", "fifo");
    made->opens_at.ms = choose(6) == 0 ? 2000 : 1000;
    made->limit_per_buyer = choose(12) == 0 ? 3 : 4;
    made->hold_ms = brief ? 1 : 600000;
    made->extend_ms = 1200000;
    made->extensions_max = 2;
    made->pace_start_milli = 1000;
    made->pace_min_milli = 10;
    made->pace_max_milli = 5000;
    made->proof_every_ms = 1000;
    made->proof_lease_ms = 600000;
    made->shards = 1;
}

static int run_judge(const struct ledger_store *store)
{
    static const enum ledger_command_kind kinds[] = {
        LEDGER_APPLY,  LEDGER_OPEN,    LEDGER_PAUSE, LEDGER_RESUME, LEDGER_RESUME,
        LEDGER_RESUME, LEDGER_REBUILD, LEDGER_CLOSE, LEDGER_PACE,   LEDGER_EXTEND_ALL};
    static struct ledger_command command;
    static const uint8_t bytes[] = {1, 2, 3};
    memset(&command, 0, sizeof command);
    command.kind = kinds[choose(COUNT_OF(kinds))];
    if (command.kind == LEDGER_CLOSE && choose(4) != 0) {
        command.kind = LEDGER_RESUME;
    }
    snprintf(command.sale, sizeof command.sale, "%s", some_sale());
    some_command_id(command.id);
    if (choose(3) != 0) { /* mostly fresh ids, sometimes one that was used */
        snprintf(command.id, sizeof command.id, "%026u", 1000000 + choose(1000000));
    }
    if (strcmp(command.sale, "none") == 0 && command.kind == LEDGER_APPLY) {
        command.kind = LEDGER_PAUSE;
    }
    command.generation = choose(2) == 0 ? 0 : near(generations[place_of(command.sale)]);
    command.control_sequence = near(sequences[place_of(command.sale)]);
    command.plan = choose(8) == 0;
    command.pace_milli = choose(6000);
    command.extend_ms = 1 + choose(TG_MAX_EXTEND_MS);
    snprintf(command.key, sizeof command.key, "%s", "operator");
    snprintf(command.cause, sizeof command.cause, "%s", "because");
    command.command = bytes;
    command.command_length = sizeof bytes;
    command.signature = bytes;
    command.signature_length = sizeof bytes;
    make_definition(command.sale, &command);
    return store->judge(store->self, &command, 0);
}

static const struct {
    int (*run)(const struct ledger_store *store);
    uint32_t weight;
} operations[] = {{run_record, 22},  {run_expire, 8},       {run_obeyed, 6}, {run_due, 6},
                  {run_snapshot, 3}, {run_reservation, 24}, {run_armed, 6},  {run_check, 10},
                  {run_log, 4},      {run_listing, 3},      {run_tick, 5},   {run_events, 2},
                  {run_judge, 12}};

static size_t choose_operation(void)
{
    uint32_t total = 0;
    for (size_t i = 0; i < COUNT_OF(operations); i++) {
        total += operations[i].weight;
    }
    uint32_t at = choose(total);
    for (size_t i = 0; i < COUNT_OF(operations); i++) {
        if (at < operations[i].weight) {
            return i;
        }
        at -= operations[i].weight;
    }
    return 0;
}

static int run_full_listing(const struct ledger_store *store)
{
    return store->sales(store->self, "", "", 0);
}

/* A resume that may succeed: it names what is active. */
static int run_good_resume(const struct ledger_store *store)
{
    static struct ledger_command command;
    static const uint8_t bytes[] = {1};
    const struct tg_sale *sale = &listed.rows[choose(listed.count)].sale;
    memset(&command, 0, sizeof command);
    command.kind = LEDGER_RESUME;
    snprintf(command.id, sizeof command.id, "%026u", 2000000 + choose(1000000));
    snprintf(command.sale, sizeof command.sale, "%s", sale->name);
    command.control_sequence = sale->control_sequence;
    command.pause_count = sale->pause_count;
    for (uint32_t i = 0; i < sale->pause_count; i++) {
        memcpy(command.pauses[i], sale->pauses[i].id, sizeof command.pauses[i]);
    }
    command.command = command.signature = bytes;
    command.command_length = command.signature_length = 1;
    return store->judge(store->self, &command, 0);
}

static int run_published(const struct ledger_store *store)
{
    return store->published(store->self, marked[on_twin], marked_count[on_twin], 0);
}

static void turn_until_told(void)
{
    const uint64_t deadline = uv_hrtime() + 20000000000u;
    while (!from_pg.told && uv_hrtime() < deadline) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_true(from_pg.told);
}

/* Longer than a hold of "brief" lasts: what has lapsed for one clock has lapsed for the other. */
static void let_time_pass(void)
{
    const uint64_t until = uv_hrtime() + PAUSE_MS * 1000000u;
    while (uv_hrtime() < until) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

/* The same choices for both stores: the second run starts from the same state of the chooser. */
static void both(struct pair *pair, int number, int (*run)(const struct ledger_store *))
{
    const uint64_t before = choice_state;
    from_pg.told = from_twin.told = false;
    from_pg.length = from_twin.length = 0;
    on_twin = 0;
    assert_int_equal(run(store_pg_port(pair->pg)), 0);
    turn_until_told();
    const uint64_t after = choice_state;
    choice_state = before;
    on_twin = 1;
    store_memory_now(pair->twin, tg_now_wall().ms);
    assert_int_equal(run(store_memory_port(pair->twin)), 0);
    assert_true(store_memory_deliver(pair->twin));
    assert_false(store_memory_deliver(pair->twin));
    assert_true(choice_state == after);
    if (strcmp(from_pg.text, from_twin.text) != 0) {
        fail_msg("operation %d of seed %" PRIu64 " differs\nPostgreSQL:\n%.3000s\ntwin:\n%.3000s",
                 number, seed, from_pg.text, from_twin.text);
    }
    let_time_pass();
}

/* So that most operations are about the present epoch, and some sales get open in between. */
static void look_around(struct pair *pair, int number)
{
    both(pair, number, run_full_listing);
    for (uint32_t i = 0; i < listed.count; i++) {
        const size_t place = place_of(listed.rows[i].sale.name);
        epochs[place] = listed.rows[i].sale.epoch;
        generations[place] = listed.rows[i].sale.generation;
        sequences[place] = listed.rows[i].sale.control_sequence;
    }
    if (listed.count > 0 && choose(2) == 0) {
        both(pair, number, run_good_resume);
    }
}

static void both_stores_answer_alike(void **state)
{
    struct pair *pair = *state;
    unsigned seen[COUNT_OF(operations)] = {0};
    for (int number = 0; number < OPERATIONS; number++) {
        if (number % 8 == 0) {
            look_around(pair, number);
        }
        const size_t chosen = choose_operation();
        seen[chosen]++;
        both(pair, number, operations[chosen].run);
        if (operations[chosen].run == run_events) {
            both(pair, number, run_published);
        }
    }
    for (size_t i = 0; i < COUNT_OF(operations); i++) {
        assert_true(seen[i] > 0);
    }
}

static void a_lost_answer_is_unknown_and_its_decision_stands(void **state)
{
    struct pair *pair = *state;
    const struct ledger_store *port = store_memory_port(pair->twin);
    from_twin = (struct heard){0};
    assert_int_equal(port->tick(port->self, 0), 0);
    assert_true(store_memory_lose(pair->twin));
    assert_int_equal(from_twin.status, TG_ERR_TIMEOUT);
    assert_false(store_memory_lose(pair->twin));
}

static int group_setup(void **state)
{
    static struct pair pair;
    const struct ledger_answers to_pg = answers_to(&from_pg), to_twin = answers_to(&from_twin);
    const char *given = getenv("TIDEGATE_SEED");
    tg_random(&seed, sizeof seed);
    seed = given != NULL ? strtoull(given, NULL, 10) : seed % 1000000000 + 1;
    choice_state = seed * 0x9e3779b97f4a7c15u | 1;
    print_message("seed %" PRIu64 "\n", seed);
    private_postgres_make();
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(ledger_migrate(private_conninfo), 0);
    const struct tg_pg_spec spec = {
        .conninfo = private_conninfo, .connections = 1, .statement_ms = 10000, .queue_max = 8};
    assert_int_equal(tg_pg_open(&loop, &spec, &pair.pool), 0);
    assert_int_equal(store_pg_open(pair.pool, &to_pg, &pair.pg), 0);
    assert_int_equal(store_memory_open(IDS, &to_twin, &pair.twin), 0);
    const uint64_t deadline = uv_hrtime() + 20000000000u;
    while (!tg_pg_connected(pair.pool) && uv_hrtime() < deadline) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_true(tg_pg_connected(pair.pool));
    *state = &pair;
    return 0;
}

static int group_teardown(void **state)
{
    struct pair *pair = *state;
    pair->pool = tg_pg_free(pair->pool);
    pair->pg = store_pg_free(pair->pg);
    pair->twin = store_memory_free(pair->twin);
    uv_run(&loop, UV_RUN_DEFAULT);
    private_postgres_remove();
    return uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_stores_answer_alike),
        cmocka_unit_test(a_lost_answer_is_unknown_and_its_decision_stands),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
