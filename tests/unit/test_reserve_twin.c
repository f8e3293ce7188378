/* SPDX-License-Identifier: Apache-2.0
 * The memory twin and the scripts on a real Redis agree: random operations, every answer and the
 * whole look compared. Times are the one difference: deadlines and clocks are left out, decisions
 * that depend on them are made with far or long past ones. */
#include "services/reserve/store_memory.h"
#include "services/reserve/store_redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEEDS = 40, OPERATIONS = 400, WORDS = 1024 };

static uv_loop_t loop;
static uv_process_t server;
static char folder[] = "/tmp/tidegate-twin-XXXXXX";
static struct reserve_store *redis;
static struct reserve_memory *memory;
static struct reserve_keys keys;
static char seal[RESERVE_SEAL_BYTES];
static uint64_t random_state;

/* ---- a private Redis ---- */

static void on_change(void *context, bool usable)
{
}

static int start_redis(void **state)
{
    static char socket_option[96], url[96];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(socket_option, sizeof socket_option, "%s/redis.sock", folder);
    (void)snprintf(url, sizeof url, "unix://%s/redis.sock", folder);
    /* Ends with us, however we end. */
    const char *const arguments[] = {"setpriv",      "--pdeathsig", "KILL", "--",
                                     "redis-server", "--port",      "0",    "--unixsocket",
                                     socket_option,  "--save",      "",     "--appendonly",
                                     "no",           "--dir",       folder, NULL};
    uv_stdio_container_t streams[3] = {
        {.flags = UV_IGNORE}, {.flags = UV_IGNORE}, {.flags = UV_IGNORE}};
    uv_process_options_t options = {
        .file = arguments[0], .args = (char **)arguments, .stdio = streams, .stdio_count = 3};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    assert_int_equal(sigaction(SIGPIPE, &ignore, NULL), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_spawn(&loop, &server, &options), 0);
    assert_int_equal(reserve_store_redis_open(&loop, url, on_change, NULL, &redis), 0);
    uint64_t until_ms = uv_now(&loop) + 10000;
    while (redis->run_id(redis) == NULL) {
        uv_run(&loop, UV_RUN_ONCE);
        assert_true(uv_now(&loop) < until_ms);
    }
    memory = malloc(sizeof *memory);
    assert_non_null(memory);
    return 0;
}

static int stop_redis(void **state)
{
    redis = reserve_store_redis_free(redis);
    free(memory);
    (void)uv_process_kill(&server, SIGKILL);
    uv_close((uv_handle_t *)&server, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    char path[96];
    (void)snprintf(path, sizeof path, "%s/redis.sock", folder);
    (void)unlink(path);
    (void)rmdir(folder);
    return uv_loop_close(&loop);
}

/* ---- one call on both ---- */

struct said {
    bool done;
    enum reserve_ending ending;
    size_t count;
    char text[WORDS][200];
};
static struct said by_redis, by_memory;

static void on_answer(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct said *said = context;
    said->done = true;
    said->ending = answer->ending;
    said->count = answer->count;
    assert_true(answer->count <= WORDS);
    for (size_t i = 0; i < answer->count; i++) {
        assert_true(reserve_word_copy(answer, i, said->text[i], sizeof said->text[i]));
    }
}

static void run_on(struct reserve_store *store, const struct reserve_call *call, struct said *said)
{
    said->done = false;
    reserve_store_run(store, call, on_answer, said, 0);
    while (!said->done) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(said->ending, RESERVE_ENDED);
}

/* Packed holds are the same but for the deadline. */
static bool same_word(const char *one, const char *other)
{
    static struct tg_hold_record left, right;
    if (strcmp(one, other) == 0) {
        return true;
    }
    if (tg_hold_record_parse(one, strlen(one), &left) != 0 ||
        tg_hold_record_parse(other, strlen(other), &right) != 0) {
        return false;
    }
    right.deadline_ms = left.deadline_ms;
    char again[TG_HOLD_RECORD_BYTES];
    (void)tg_hold_record_format(&right, again);
    return strcmp(one, again) == 0;
}

/* Words of `look` that are clocks: now, attested until, load at. */
static bool is_clock(const struct reserve_call *call, size_t word)
{
    return (call->script == RESERVE_SCRIPT_LOOK && (word == 1 || word == 6 || word == 14)) ||
           (call->script == RESERVE_SCRIPT_ATTEST && word == 1);
}

static const char *run_both(const struct reserve_call *call)
{
    run_on(redis, call, &by_redis);
    run_on(&memory->port, call, &by_memory);
    bool doubt = strcmp(by_redis.text[0], "doubt") == 0;
    size_t compared = doubt ? 1 : by_redis.count;
    bool agree = doubt || by_redis.count == by_memory.count;
    for (size_t i = 0; agree && i < compared; i++) {
        agree = is_clock(call, i) || same_word(by_redis.text[i], by_memory.text[i]);
    }
    if (!agree) {
        for (size_t i = 0; i < by_redis.count || i < by_memory.count; i++) {
            print_message("%zu redis [%s] memory [%s]\n", i,
                          i < by_redis.count ? by_redis.text[i] : "",
                          i < by_memory.count ? by_memory.text[i] : "");
        }
        fail_msg("%s differs", reserve_script_name(call->script));
    }
    return by_redis.text[0];
}

/* ---- random operations ---- */

static uint32_t below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 11) % bound);
}

static const char *reservation_of(uint32_t index)
{
    static char text[TG_RESERVATION_ID_LENGTH + 1];
    (void)snprintf(text, sizeof text, "res_%026u", index);
    return text;
}

static void random_demands(struct reserve_request *request, bool plain)
{
    request->demand_count = plain ? 1 : 1 + below(keys.item_count);
    request->wanted_units = 0;
    for (uint32_t i = 0; i < request->demand_count; i++) {
        struct reserve_demand *demand = &request->demands[i];
        *demand = (struct reserve_demand){.item = i, .any = plain ? 1 : below(3)};
        uint32_t named = plain ? 0 : below(3);
        for (uint32_t n = 0; n < named; n++) {
            demand->named[demand->named_count++] = below(20) * 2 + n % 2;
        }
        if (demand->any + demand->named_count == 0) {
            demand->any = 1;
        }
        request->wanted_units += demand->any + demand->named_count;
    }
}

static void random_hold(void)
{
    static struct reserve_request request;
    struct reserve_call call;
    memset(&request, 0, sizeof request);
    /* A reservation's id is derived from its user: nobody else has it. */
    uint32_t number = below(119);
    memcpy(request.reservation, reservation_of(number), sizeof request.reservation);
    request.user[0] = (uint8_t)('a' + number % 24);
    request.user_length = 1;
    request.place[0] = (uint8_t)below(40);
    request.digest[0] = (uint8_t)below(2);
    request.window = 1 + below(6);
    request.pass_expires_ms = below(20) == 0 ? 1 : INT64_C(1) << 51;
    random_demands(&request, below(2) == 0);
    const struct reserve_hold_terms terms = {seal, "reserve-a", below(20) != 0, 600000};
    reserve_call_hold(&call, &keys, &request, &terms);
    (void)run_both(&call);
}

/* A pause that one of them gave itself has an id of its own: each lifts what it has. */
static void lift_everything(void)
{
    struct reserve_call look, lift;
    struct said *said[] = {&by_redis, &by_memory};
    struct reserve_store *stores[] = {redis, &memory->port};
    reserve_call_look(&look, &keys);
    for (size_t i = 0; i < 2; i++) {
        run_on(stores[i], &look, said[i]);
        reserve_call_lift(&lift, &keys);
        for (size_t at = 17 + 6 * (size_t)keys.item_count; at < said[i]->count; at++) {
            reserve_call_lift_id(&lift, said[i]->text[at]);
        }
        static struct said lifted;
        run_on(stores[i], &lift, &lifted);
    }
}

static void random_order(void)
{
    static const enum reserve_script orders[] = {RESERVE_SCRIPT_SETTLE, RESERVE_SCRIPT_RELEASE,
                                                 RESERVE_SCRIPT_EXTEND};
    struct reserve_call call;
    struct reserve_gate_name gate = {&keys, seal, "reserve-a"};
    /* Drawn one by one: the order of arguments is the compiler's. */
    const char *reservation = reservation_of(below(120));
    uint32_t kind = below(4), deadline_ms = 1000 + below(2000);
    if (kind == 3) {
        reserve_call_acknowledge(&call, &gate, reservation, deadline_ms);
    } else {
        reserve_call_obey(&call, &gate, orders[kind], reservation, deadline_ms);
    }
    if (strcmp(run_both(&call), "doubt") == 0) {
        lift_everything();
    }
}

static void random_pause(void)
{
    static const char *const ids[] = {"00000000000000000000000001", "00000000000000000000000002"};
    struct reserve_call call;
    if (below(3) == 0) {
        reserve_call_pause(&call, &keys);
        reserve_call_pause_id(&call, ids[below(2)], "test");
    } else {
        reserve_call_lift(&call, &keys);
        reserve_call_lift_id(&call, ids[0]);
        reserve_call_lift_id(&call, ids[1]);
    }
    (void)run_both(&call);
}

static void wrong_gate(void)
{
    struct reserve_call call;
    bool right_gate = below(2) == 0, right_run = below(2) == 0;
    struct reserve_gate_name gate = {&keys, right_gate ? seal : "1 x y", "reserve-a"};
    const struct reserve_attestation attestation = {right_run ? memory->run_id_text : "x",
                                                    memory->replication_id_text, 1000, 3000};
    reserve_call_attest(&call, &gate, &attestation);
    (void)run_both(&call);
    gate.seal = "1 x y";
    reserve_call_obey(&call, &gate, RESERVE_SCRIPT_RELEASE, reservation_of(below(120)), 0);
    assert_string_equal(run_both(&call), "unknown_gate");
}

static void compare_looks(void)
{
    struct reserve_call call;
    reserve_call_look(&call, &keys);
    run_on(redis, &call, &by_redis);
    run_on(&memory->port, &call, &by_memory);
    assert_int_equal(by_redis.count, by_memory.count);
    size_t counters_end = 17 + 6 * (size_t)keys.item_count; /* pause ids follow */
    for (size_t i = 0; i < by_redis.count && i < counters_end; i++) {
        if (!is_clock(&call, i)) {
            assert_string_equal(by_redis.text[i], by_memory.text[i]);
        }
    }
}

/* ---- a gate on both ---- */

static void make_gate(uint64_t seed)
{
    static struct tg_sale sale;
    struct reserve_call call;
    memset(&sale, 0, sizeof sale);
    (void)snprintf(sale.name, sizeof sale.name, "twin-%u", (unsigned)seed);
    sale.item_count = 1 + (uint32_t)(seed % 3);
    sale.limit_per_buyer = 1 + (uint32_t)(seed % 5);
    for (uint32_t i = 0; i < sale.item_count; i++) {
        sale.items[i].units = i == 0 ? 40 + 60 * (uint32_t)(seed % 2) : 40;
    }
    reserve_memory_init(memory, redis->run_id(redis), redis->replication_id(redis));
    memory->now_ms = INT64_C(1800000000000);
    reserve_seal(memory->run_id_text, memory->replication_id_text, seal);
    reserve_keys_make(sale.name, 0, 3, sale.item_count, &keys);
    const struct reserve_loader loader = {&keys, "reserve-a", memory->run_id_text,
                                          memory->replication_id_text};
    compare_looks();
    reserve_call_load_begin(&call, &loader, &sale);
    assert_string_equal(run_both(&call), "begun");
    static const char live[] = "AAAAAAAAAAAAAAAAAAAAAA 3 1000 BBBBBBBBBBBBBBBBBBBBBA 0:7 0 z";
    const struct reserve_word packed = {live, sizeof live - 1};
    reserve_call_load_page(&call, &loader, 1);
    reserve_call_load_row(&call, "held", reservation_of(119), &packed);
    assert_string_equal(run_both(&call), "loaded");
    assert_string_equal(run_both(&call), "wrong_page");
    reserve_call_load_finish(&call, &loader);
    assert_string_equal(run_both(&call), "verified");
    reserve_call_arm(&call, &loader);
    assert_string_equal(run_both(&call), "armed");
    reserve_call_load_begin(&call, &loader, &sale);
    assert_string_equal(run_both(&call), "armed");
    const struct reserve_gate_name gate = {&keys, seal, "reserve-a"};
    const struct reserve_attestation far = {memory->run_id_text, memory->replication_id_text,
                                            INT64_C(1) << 50, INT64_C(1) << 40};
    reserve_call_attest(&call, &gate, &far);
    assert_string_equal(run_both(&call), "attested");
}

static void twin_and_scripts_agree(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
        make_gate(seed);
        for (int i = 0; i < OPERATIONS; i++) {
            uint32_t kind = below(100);
            if (kind < 60) {
                random_hold();
            } else if (kind < 94) {
                random_order();
            } else if (kind < 98) {
                random_pause();
            } else {
                wrong_gate();
            }
            if (i % 10 == 0) {
                compare_looks();
            }
        }
        compare_looks();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twin_and_scripts_agree),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
