/* SPDX-License-Identifier: Apache-2.0
 * The gate: the shipped scripts over the simulator's Redis in memory, and on a real one. */
#include "tests/conformance/gate_server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    RESERVATIONS = 14,
    EPOCHS = 2,
    UNITS_MOST = 6,
    LEASE_MS = 3000,
    NAME_BYTES = TG_RESERVATION_ID_LENGTH + 1
};
#define RUN_ID "run-1"
#define REPLICATION_ID "set-1"

struct world {
    struct memory_redis data;
    int64_t now_ms;
    bool exhausted;
    struct tg_sale sale;
    struct reserve_keys keys[EPOCHS];
    char seal[RESERVE_SEAL_BYTES];
    struct conformance_report *report;
    /* of the operation under way */
    struct conformance_chance chance;
    uint32_t epoch; /* 0 or 1 */
    struct reserve_call call;
};
static struct world world;

static uint32_t below(uint32_t bound)
{
    return conformance_below(&world.chance, bound);
}

static bool percent(uint32_t chance)
{
    return conformance_percent(&world.chance, chance);
}

/* ---- one call on both ---- */

static void say_ending(const struct reserve_answer *answer, int script)
{
    struct conformance_side *side = &world.report->model;
    struct redis_word words[GATE_WORDS];
    if (answer->ending != RESERVE_ENDED) {
        conformance_say(side, answer->ending == RESERVE_NOT_RUN ? "out of memory" : "error");
        return;
    }
    for (size_t i = 0; i < answer->count; i++) {
        assert(i < GATE_WORDS);
        words[i] = (struct redis_word){answer->words[i].text, answer->words[i].length};
    }
    gate_say_answer(side, script, world.sale.item_count, words, answer->count);
}

static void run_model(int script, const struct gate_words *call)
{
    struct reserve_answer answer;
    const struct gate_machine machine = {
        .data = &world.data, .now_ms = world.now_ms, .out_of_memory = world.exhausted};
    gate_script_run(&machine, script, call, &answer);
    say_ending(&answer, script);
}

/* The model's pages are small, to try the cursors; Redis gives so small a set in one. */
static void run_model_due(const struct gate_words *call)
{
    struct redis_word words[GATE_WORDS], all[GATE_WORDS];
    struct reserve_answer answer;
    size_t count = 2;
    const struct gate_machine machine = {
        .data = &world.data, .now_ms = world.now_ms, .out_of_memory = world.exhausted};
    const struct gate_words page = {call->key_count, call->count, words};
    memcpy(words, call->words, (size_t)call->count * sizeof words[0]);
    do {
        gate_script_run(&machine, RESERVE_SCRIPT_DUE, &page, &answer);
        if (answer.ending != RESERVE_ENDED || answer.count < 2) {
            say_ending(&answer, RESERVE_SCRIPT_DUE);
            return;
        }
        for (size_t i = 0; i < answer.count; i++) {
            assert(count < GATE_WORDS);
            all[i < 2 ? i : count++] =
                (struct redis_word){answer.words[i].text, answer.words[i].length};
        }
        words[call->key_count + 2] = all[1];
    } while (!reserve_word_is(&answer, 1, "0"));
    gate_say_answer(&world.report->model, RESERVE_SCRIPT_DUE, world.sale.item_count, all, count);
}

static void say_what(int script, const struct gate_words *call)
{
    struct conformance_side *what = &world.report->what;
    conformance_line(what);
    conformance_say(what, "%" PRId64 "%s %s", world.now_ms, world.exhausted ? " (no memory)" : "",
                    gate_script_name(script));
    for (int i = call->key_count; i < call->count; i++) {
        conformance_say(what, " '");
        conformance_bytes(what, call->words[i].text, call->words[i].length);
        conformance_say(what, "'");
    }
}

static void run_words(int script, const struct gate_words *call)
{
    say_what(script, call);
    conformance_line(&world.report->model);
    if (script == RESERVE_SCRIPT_DUE) {
        run_model_due(call);
    } else {
        run_model(script, call);
    }
    gate_server_clock(world.now_ms);
    gate_server_run(script, call);
}

static void run_call(void)
{
    struct redis_word words[RESERVE_CALL_WORDS];
    const struct gate_words call = {world.call.key_count, world.call.count, words};
    for (int i = 0; i < world.call.count; i++) {
        words[i] = (struct redis_word){world.call.words[i], world.call.lengths[i]};
    }
    run_words((int)world.call.script, &call);
}

/* ---- operations ---- */

static void name_of(uint32_t number, char out_name[NAME_BYTES])
{
    (void)snprintf(out_name, NAME_BYTES, "res_%026u", number % 1000);
}

static struct reserve_gate_name gate_name(void)
{
    return (struct reserve_gate_name){&world.keys[world.epoch],
                                      percent(95) ? world.seal : "1 run-0 set-0", "source"};
}

static void random_demands(struct reserve_request *request)
{
    const bool plain = percent(50);
    const uint32_t items = plain ? 1 : 1 + below(world.sale.item_count);
    for (uint32_t i = 0; i < items; i++) {
        struct reserve_demand *demand = &request->demands[request->demand_count++];
        *demand = (struct reserve_demand){.item = i, .any = plain ? 1 : below(3)};
        while (!plain && demand->named_count < 2 && percent(40)) {
            const uint32_t unit = below(UNITS_MOST); /* sometimes twice, sometimes none such */
            demand->named[demand->named_count++] = unit;
        }
        demand->any += demand->any + demand->named_count == 0;
        request->wanted_units += demand->any + demand->named_count;
    }
}

static void hold(void)
{
    static struct reserve_request request;
    memset(&request, 0, sizeof request);
    const uint32_t number = below(RESERVATIONS);
    name_of(number, request.reservation);
    request.user[0] = (uint8_t)('a' + number % 5);
    request.user[1] = ' ';
    request.user[2] = (uint8_t)(number % 2 ? 0 : 0xff);
    request.user_length = 3;
    request.place[0] = (uint8_t)(percent(80) ? number : below(RESERVATIONS));
    request.window = below(4);
    request.digest[0] = percent(90) ? 0 : 1;
    request.pass_expires_ms = world.now_ms + (percent(90) ? 1000 : -60000);
    random_demands(&request);
    const struct reserve_hold_terms terms = {percent(97) ? world.seal : "1 run-0 set-0", "source",
                                             percent(95), 600};
    reserve_call_hold(&world.call, &world.keys[world.epoch], &request, &terms);
    run_call();
}

static void order(enum reserve_script script)
{
    char name[NAME_BYTES];
    const struct reserve_gate_name gate = gate_name();
    name_of(below(RESERVATIONS), name);
    const int64_t deadline_ms = world.now_ms + (int64_t)below(2000) - 200;
    if (script == RESERVE_SCRIPT_ACKNOWLEDGE) {
        reserve_call_acknowledge(&world.call, &gate, name, deadline_ms);
    } else {
        reserve_call_obey(&world.call, &gate, script, name, deadline_ms);
    }
    run_call();
}

static void pause_or_lift(bool lifts)
{
    static const char *const ids[] = {"00000000000000000000000001", "00000000000000000000000002",
                                      "00000000000000000000000003"};
    if (lifts) {
        reserve_call_lift(&world.call, &world.keys[world.epoch]);
    } else {
        reserve_call_pause(&world.call, &world.keys[world.epoch]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (!lifts && percent(40)) {
            reserve_call_pause_id(&world.call, ids[i], "because");
        } else if (lifts && percent(80)) {
            reserve_call_lift_id(&world.call, ids[i]);
        }
    }
    run_call();
}

static void attest(bool surely)
{
    const struct reserve_gate_name gate = gate_name();
    const struct reserve_attestation attestation = {
        surely || percent(90) ? RUN_ID : "run-0", REPLICATION_ID,
        world.now_ms - (surely ? 0 : (int64_t)below(2000) - 500), LEASE_MS};
    reserve_call_attest(&world.call, &gate, &attestation);
    run_call();
}

static void due(void)
{
    const struct reserve_gate_name gate = gate_name();
    reserve_call_due(&world.call, &gate, "0", percent(50) ? INT64_MIN / 4 : 0, below(800));
    run_call();
}

static void trim(void)
{
    const struct reserve_gate_name gate = gate_name();
    reserve_call_trim(&world.call, &gate, below(12));
    run_call();
}

static void look(void)
{
    reserve_call_look(&world.call, &world.keys[world.epoch]);
    run_call();
}

/* Keys in the order of the checker's script: ctl held unacked settled released buyers used pauses
 * log free... */
static void look_as_checker(void)
{
    static const uint8_t from[RESERVE_PLAIN_KEYS] = {0, 2, 3, 4, 5, 6, 7, 1, 8};
    struct redis_word words[RESERVE_PLAIN_KEYS + TG_MAX_ITEMS_PER_SALE];
    const struct reserve_keys *keys = &world.keys[world.epoch];
    const int count = RESERVE_PLAIN_KEYS + (int)keys->item_count;
    for (int i = 0; i < count; i++) {
        const int at = i < RESERVE_PLAIN_KEYS ? from[i] : i;
        words[i] = (struct redis_word){keys->text[at], keys->lengths[at]};
    }
    const struct gate_words call = {count, count, words};
    run_words(GATE_SCRIPT_CHECK, &call);
}

/* ---- loading ---- */

static struct reserve_loader loader(bool right)
{
    return (struct reserve_loader){&world.keys[world.epoch], right ? "loader" : "other", RUN_ID,
                                   REPLICATION_ID};
}

static void load_page(bool right)
{
    static const char *const states[] = {"held", "settled", "released"};
    const struct reserve_loader by = loader(right);
    char names[3][NAME_BYTES], texts[3][TG_HOLD_RECORD_BYTES];
    struct reserve_word packed[3];
    reserve_call_load_page(&world.call, &by, 1 + below(2));
    const uint32_t rows = below(4);
    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t number = below(RESERVATIONS);
        struct tg_hold_record record = {.window = below(3),
                                        .deadline_ms = world.now_ms + below(1000),
                                        .user = {(uint8_t)('a' + number % 5)},
                                        .user_length = 1,
                                        .place = {(uint8_t)number},
                                        .unit_count = 1,
                                        .units = {{below(world.sale.item_count), below(4)}},
                                        .slots = {below(2)}};
        name_of(number, names[i]);
        packed[i] = (struct reserve_word){texts[i], tg_hold_record_format(&record, texts[i])};
        reserve_call_load_row(&world.call, states[below(3)], names[i], &packed[i]);
    }
    run_call();
}

static void load(void)
{
    const bool right = percent(90);
    const struct reserve_loader by = loader(right);
    switch (below(4)) {
    case 0:
        reserve_call_load_begin(&world.call, &by, &world.sale);
        run_call();
        break;
    case 1:
        load_page(right);
        break;
    case 2:
        reserve_call_load_finish(&world.call, &by);
        run_call();
        break;
    default:
        reserve_call_arm(&world.call, &by);
        run_call();
        break;
    }
}

static void make_gate(void)
{
    const struct reserve_loader by = loader(true);
    reserve_call_load_begin(&world.call, &by, &world.sale);
    run_call();
    if (percent(30)) {
        load_page(true);
    }
    reserve_call_load_finish(&world.call, &by);
    run_call();
    reserve_call_arm(&world.call, &by);
    run_call();
    attest(true);
}

/* ---- strangers ---- */

static struct redis_key *key_of(int name)
{
    const struct reserve_keys *keys = &world.keys[world.epoch];
    return redis_find(&world.data, keys->text[name], keys->lengths[name]);
}

static void send_words(int count, const char *const *words)
{
    size_t lengths[8];
    for (int i = 0; i < count; i++) {
        lengths[i] = strlen(words[i]);
    }
    gate_server_command(count, words, lengths);
}

static void delete_key(int name)
{
    const char *text = world.keys[world.epoch].text[name];
    if (key_of(name) != NULL) {
        redis_unlink(&world.data, key_of(name));
    }
    send_words(2, (const char *const[]){"DEL", text});
}

static void set_field(int name, const char *field, const char *value)
{
    const struct reserve_keys *keys = &world.keys[world.epoch];
    struct redis_key *key = key_of(name);
    if (key == NULL || key->type != REDIS_HASH) {
        return;
    }
    redis_set(&world.data, key, &(struct redis_word){field, strlen(field)},
              &(struct redis_word){value, strlen(value)});
    send_words(4, (const char *const[]){"HSET", keys->text[name], field, value});
}

static void make_string(int name)
{
    const struct reserve_keys *keys = &world.keys[world.epoch];
    delete_key(name);
    struct redis_key *key = redis_take(&world.data, keys->text[name], keys->lengths[name]);
    key->type = REDIS_STRING;
    key->bitmap[0] = 'x';
    key->bitmap_length = 1;
    send_words(3, (const char *const[]){"SET", keys->text[name], "x"});
}

static void meddle(void)
{
    static const char *const fields[] = {"stock:0", "held:0", "settled:0", "seq",
                                         "epoch",   "seal",   "initial:0", "cursor:0"};
    static const char *const values[] = {"0", "1", "2", "9", "x", ""};
    char name[NAME_BYTES];
    if (world.exhausted) {
        return; /* a stranger would be refused */
    }
    name_of(below(RESERVATIONS), name);
    switch (below(5)) {
    case 0:
    case 1:
        set_field(0, fields[below(8)], values[below(6)]);
        break;
    case 2:
        delete_key(1 + (int)below(8));
        break;
    case 3:
        make_string(2 + (int)below(7));
        break;
    default:
        set_field(2 + (int)below(2) * 2, name, percent(50) ? "garbage" : "p 1 2 d 0:1 0 a");
        break;
    }
}

static void operation(void)
{
    static const struct {
        uint32_t weight;
        enum reserve_script script;
    } orders[] = {{12, RESERVE_SCRIPT_ACKNOWLEDGE},
                  {10, RESERVE_SCRIPT_SETTLE},
                  {13, RESERVE_SCRIPT_RELEASE},
                  {5, RESERVE_SCRIPT_EXTEND}};
    static void (*const others[])(void) = {due, trim, look, look_as_checker, load, load};
    uint32_t draw = below(120);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (draw < orders[i].weight) {
            order(orders[i].script);
            return;
        }
        draw -= orders[i].weight;
    }
    if (draw < 48) {
        hold();
    } else if (draw < 52) {
        pause_or_lift(draw > 49);
    } else if (draw < 57) {
        attest(false);
    } else if (draw < 74) {
        others[below(6)]();
    } else if (draw < 77) {
        meddle();
        look_as_checker();
    } else {
        world.exhausted = !world.exhausted && percent(50);
        gate_server_memory(world.exhausted);
        look();
    }
}

/* ---- what is stored ---- */

static void say_stream(const struct redis_key *key)
{
    for (uint16_t at = key->first; at != 0; at = world.data.log[at - 1].next) {
        const struct redis_log *entry = &world.data.log[at - 1];
        conformance_say(&world.report->model, " %" PRIu64 "-0 %s %s %s %" PRId64, entry->sequence,
                        entry->kind, entry->reservation, entry->units, entry->stock_after);
    }
}

static void say_entries(const struct redis_key *key)
{
    struct conformance_piece pieces[GATE_WORDS];
    size_t count = 0;
    for (uint16_t at = key->first; at != 0; at = world.data.entries[at - 1].next) {
        const struct redis_entry *entry = &world.data.entries[at - 1];
        assert(count < GATE_WORDS);
        pieces[count] = (struct conformance_piece){entry->field, entry->field_length, NULL, 0};
        if (key->type == REDIS_HASH) {
            pieces[count].more = entry->value;
            pieces[count].more_length = entry->value_length;
        }
        count++;
    }
    conformance_sorted(&world.report->model, pieces, count);
}

static void compare_contents(void)
{
    const int names = RESERVE_PLAIN_KEYS + (int)world.sale.item_count;
    for (int i = 0; i < names * EPOCHS; i++) {
        world.epoch = (uint32_t)(i / names);
        const struct reserve_keys *keys = &world.keys[world.epoch];
        const struct redis_key *key = key_of(i % names);
        const enum redis_type type = key != NULL ? (enum redis_type)key->type : REDIS_NONE;
        conformance_line(&world.report->model);
        gate_server_dump(type, keys->text[i % names], keys->lengths[i % names]);
        if (type == REDIS_STREAM) {
            say_stream(key);
        } else if (type == REDIS_STRING) {
            conformance_bytes(&world.report->model, (const char *)key->bitmap, key->bitmap_length);
        } else if (type != REDIS_NONE) {
            say_entries(key);
        }
    }
}

/* ---- the part ---- */

static void open_gate(const char *path, const struct conformance_mutant *mutant_or_null)
{
    gate_script_open(NULL, 0);
    gate_server_open(path, mutant_or_null);
    reserve_seal(RUN_ID, REPLICATION_ID, world.seal);
}

static void run_gate(const struct conformance_sequence *sequence, struct conformance_report *report)
{
    world.report = report;
    world.chance.state = sequence->seed;
    world.now_ms = INT64_C(1800000000000) + below(1000);
    world.exhausted = false;
    world.epoch = 0;
    world.sale.item_count = 1 + below(2);
    world.sale.limit_per_buyer = 1 + below(3);
    gate_script_reset();
    redis_flush(&world.data);
    gate_server_begin();
    for (uint32_t i = 0; i < world.sale.item_count; i++) {
        world.sale.items[i].units = 1 + below(UNITS_MOST);
    }
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        reserve_keys_make("s", 0, epoch + 1, world.sale.item_count, &world.keys[epoch]);
    }
    if (percent(90)) {
        make_gate();
    }
    for (uint32_t i = 0; i < sequence->count; i++) {
        world.chance.state = sequence->operations[i];
        world.now_ms += percent(90) ? below(60) : below(1500);
        world.epoch = percent(96) ? 0 : 1;
        operation();
    }
    compare_contents();
    gate_server_answers(&report->server, world.sale.item_count);
}

static const struct conformance_mutant mutants[] = {
    {"server_keeps_unit", "release", "call('SETBIT', bit[1], bit[2], 1)", ""},
    {"server_limits_less", "hold", "used_count + wanted > limit",
     "used_count + wanted > limit + 1"},
    {"server_forgets_slot", "release", "call('HSET', KEYS[7], user, table.concat(rest, ','))", ""}};

const struct conformance_part conformance_gate = {.name = "gate",
                                                  .operations_least = 12,
                                                  .operations_most = CONFORMANCE_OPERATIONS,
                                                  .mutants = mutants,
                                                  .mutant_count =
                                                      sizeof mutants / sizeof mutants[0],
                                                  .open = open_gate,
                                                  .run = run_gate};
