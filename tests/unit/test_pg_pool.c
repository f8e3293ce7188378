/* SPDX-License-Identifier: Apache-2.0
 * lib/io/pg against a real PostgreSQL of its own: what is told, when, and what is never told. */
#include "tests/unit/private_postgres.h"

#include "lib/io/pg.h"

static uv_loop_t loop;

static int group_setup(void **state)
{
    private_postgres_make();
    return uv_loop_init(&loop);
}

static int group_teardown(void **state)
{
    private_postgres_remove();
    return uv_loop_close(&loop);
}

/* What the callbacks saw. */
struct told {
    unsigned count;
    uint64_t token;
    int status;
    int rows;
    char value[64];
    char sqlstate[8];
};

static void on_result(void *context, uint64_t token, int status, const PGresult *result)
{
    struct told *told = context;
    told->count++;
    told->token = token;
    told->status = status;
    assert_int_equal(result == NULL, status == TG_ERR_TIMEOUT || status == TG_ERR_DISCONNECTED);
    if (status == 0) {
        told->rows = PQntuples(result);
        snprintf(told->value, sizeof told->value, "%s",
                 told->rows > 0 ? PQgetvalue(result, 0, 0) : "");
    } else if (result != NULL) {
        const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        snprintf(told->sqlstate, sizeof told->sqlstate, "%s", sqlstate != NULL ? sqlstate : "");
    }
}

static struct tg_pg *open_pool(uint32_t connections, uint32_t statement_ms, uint32_t queue_max)
{
    const struct tg_pg_spec spec = {.conninfo = private_conninfo,
                                    .connections = connections,
                                    .statement_ms = statement_ms,
                                    .queue_max = queue_max};
    struct tg_pg *pg = NULL;
    assert_int_equal(tg_pg_open(&loop, &spec, &pg), 0);
    return pg;
}

/* Turns the loop until `*count` is `wanted`; the test's own deadline is generous, machines are
 * slow. */
static void until(const unsigned *count, unsigned wanted)
{
    const uint64_t deadline = uv_hrtime() + 20000000000u;
    while (*count < wanted && uv_hrtime() < deadline) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(*count, wanted);
}

static void until_connected(const struct tg_pg *pg, bool wanted)
{
    const uint64_t deadline = uv_hrtime() + 20000000000u;
    while (tg_pg_connected(pg) != wanted && uv_hrtime() < deadline) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(tg_pg_connected(pg), wanted);
}

static void close_pool(struct tg_pg *pg)
{
    assert_null(tg_pg_free(pg));
    uv_run(&loop, UV_RUN_DEFAULT);
}

static int run_sql(struct tg_pg *pg, const char *sql, struct told *told)
{
    const struct tg_pg_statement statement = {.sql = sql};
    return tg_pg_run(pg, &statement, on_result, told, 42);
}

static void ask(struct tg_pg *pg, const char *sql, struct told *told)
{
    *told = (struct told){0};
    assert_int_equal(run_sql(pg, sql, told), 0);
    assert_int_equal(told->count, 0); /* never from inside the call */
    until(&told->count, 1);
    assert_int_equal(told->token, 42);
}

static void answers_come_once_with_their_token(void **state)
{
    struct tg_pg *pg = open_pool(2, 5000, 16);
    struct told told = {0};
    assert_int_equal(run_sql(pg, "SELECT 1", &told), TG_ERR_DISCONNECTED); /* not yet connected */
    until_connected(pg, true);
    ask(pg, "SELECT 'x' || 1", &told);
    assert_int_equal(told.status, 0);
    assert_string_equal(told.value, "x1");
    ask(pg, "SELECT 1 WHERE false", &told);
    assert_int_equal(told.rows, 0);
    ask(pg, "SELECT nonsense", &told);
    assert_int_equal(told.status, TG_ERR_STORE);
    assert_string_equal(told.sqlstate, "42703");
    ask(pg, "SELECT 2", &told); /* the connection lives on */
    assert_string_equal(told.value, "2");
    close_pool(pg);
}

static void parameters_are_copied(void **state)
{
    struct tg_pg *pg = open_pool(1, 5000, 16);
    struct told told = {0};
    char text[] = "a'b\"c\\", bytes[] = {1, 0, 2};
    until_connected(pg, true);
    struct tg_pg_statement statement = {
        .sql = "SELECT $1::text || coalesce($2::text, ' null ') || encode($3::bytea, 'hex')",
        .parameter_count = 3,
        .values = {text, NULL, bytes},
        .lengths = {0, 0, 3},
        .formats = {0, 0, 1}};
    assert_int_equal(tg_pg_run(pg, &statement, on_result, &told, 42), 0);
    memset(text, 'X', sizeof text - 1);
    memset(bytes, 9, sizeof bytes);
    until(&told.count, 1);
    assert_string_equal(told.value, "a'b\"c\\ null 010002");
    close_pool(pg);
}

static void more_statements_than_connections_wait_their_turn(void **state)
{
    enum { STATEMENTS = 50 };
    struct tg_pg *pg = open_pool(3, 10000, STATEMENTS);
    struct told told = {0};
    until_connected(pg, true);
    for (int i = 0; i < STATEMENTS; i++) {
        assert_int_equal(run_sql(pg, "SELECT pg_sleep(0.005)", &told), 0);
    }
    assert_true(tg_pg_in_progress(pg) > 3);
    until(&told.count, STATEMENTS);
    assert_int_equal(told.status, 0);
    assert_int_equal(tg_pg_in_progress(pg), 0);
    close_pool(pg);
}

static void a_full_queue_refuses(void **state)
{
    struct tg_pg *pg = open_pool(1, 10000, 2);
    struct told told = {0};
    until_connected(pg, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_sql(pg, "SELECT pg_sleep(0.05)", &told), 0); /* one runs, two wait */
    }
    assert_int_equal(run_sql(pg, "SELECT 1", &told), TG_ERR_FULL);
    until(&told.count, 3);
    close_pool(pg);
}

/* The commit fails after the statement succeeded: a deferred trigger. The good result must never be
 * told. */
static void a_commit_that_fails_is_no_success(void **state)
{
    struct tg_pg *pg = open_pool(1, 5000, 16);
    struct told told;
    until_connected(pg, true);
    ask(pg,
        "CREATE TABLE late (n integer); CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql "
        "AS "
        "'BEGIN RAISE EXCEPTION ''too late''; END'; CREATE CONSTRAINT TRIGGER late AFTER INSERT ON "
        "late "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()",
        &told);
    assert_int_equal(told.status, 0);
    const struct tg_pg_statement insert = {.sql =
                                               "INSERT INTO late VALUES ($1::integer) RETURNING n",
                                           .parameter_count = 1,
                                           .values = {"1"}};
    told = (struct told){0};
    assert_int_equal(tg_pg_run(pg, &insert, on_result, &told, 42), 0);
    until(&told.count, 1);
    assert_int_equal(told.status, TG_ERR_STORE);
    ask(pg, "INSERT INTO late VALUES (2) RETURNING n", &told);
    assert_int_equal(told.status, TG_ERR_STORE);
    ask(pg, "SELECT count(*) FROM late", &told);
    assert_string_equal(told.value, "0");
    close_pool(pg);
}

static void serialization_failures_are_repeated_a_few_times(void **state)
{
    static const char *const codes[] = {"40001", "40P01"};
    struct tg_pg *pg = open_pool(1, 10000, 16);
    struct told told;
    char sql[256];
    until_connected(pg, true);
    ask(pg, "CREATE SEQUENCE tries", &told);
    ask(pg,
        "CREATE FUNCTION clash(code text, times integer) RETURNS bigint LANGUAGE plpgsql AS "
        "'DECLARE n bigint := nextval(''tries''); BEGIN IF n <= times THEN RAISE EXCEPTION "
        "''clash'' USING "
        "ERRCODE = code; END IF; RETURN n; END'",
        &told);
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        ask(pg, "SELECT setval('tries', 1, false)", &told);
        snprintf(sql, sizeof sql, "SELECT clash('%s', 5)", codes[i]);
        ask(pg, sql, &told);
        assert_int_equal(told.status, 0);
        assert_string_equal(told.value, "6"); /* five repeats */
        ask(pg, "SELECT setval('tries', 1, false)", &told);
        snprintf(sql, sizeof sql, "SELECT clash('%s', 1000)", codes[i]);
        ask(pg, sql, &told);
        assert_int_equal(told.status, TG_ERR_STORE); /* then it is told */
        assert_string_equal(told.sqlstate, codes[i]);
        ask(pg, "SELECT last_value FROM tries", &told);
        assert_string_equal(told.value, "6");
    }
    close_pool(pg);
}

static void a_late_answer_is_unknown_and_the_pool_recovers(void **state)
{
    struct tg_pg *pg = open_pool(1, 300, 16);
    struct told told = {0}, waiting = {0};
    until_connected(pg, true);
    assert_int_equal(run_sql(pg, "SELECT pg_sleep(30)", &told), 0);
    assert_int_equal(run_sql(pg, "SELECT 1", &waiting), 0);
    until(&told.count, 1);
    assert_int_equal(told.status, TG_ERR_TIMEOUT);
    until(&waiting.count,
          1); /* its own time passed in the queue, or it ran on the next connection */
    assert_true(waiting.status == TG_ERR_TIMEOUT || waiting.status == 0);
    until_connected(pg, true);
    ask(pg, "SELECT 7", &told);
    assert_string_equal(told.value, "7");
    close_pool(pg);
}

static void a_killed_backend_is_unknown(void **state)
{
    struct tg_pg *pg = open_pool(2, 5000, 16);
    struct told told = {0}, killer;
    until_connected(pg, true);
    for (int i = 0; i < 20; i++) {
        told = (struct told){0};
        assert_int_equal(run_sql(pg, "SELECT pg_sleep(30) /* victim */", &told), 0);
        do {
            until_connected(pg, true);
            ask(pg,
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE "
                "'%pg_sleep(30) /* victim%' AND pid <> pg_backend_pid()",
                &killer);
        } while (killer.status != 0 || strcmp(killer.value, "0") == 0);
        until(&told.count, 1);
        assert_int_equal(told.status, TG_ERR_DISCONNECTED);
    }
    close_pool(pg);
}

static void a_server_that_went_away_comes_back(void **state)
{
    struct tg_pg *pg = open_pool(2, 5000, 16);
    struct told told = {0};
    until_connected(pg, true);
    private_postgres_stop();
    until_connected(pg, false);
    assert_int_equal(run_sql(pg, "SELECT 1", &told), TG_ERR_DISCONNECTED);
    private_postgres_start();
    until_connected(pg, true);
    ask(pg, "SELECT 3", &told);
    assert_string_equal(told.value, "3");
    close_pool(pg);
}

static void closing_tells_what_was_under_way(void **state)
{
    struct tg_pg *pg = open_pool(1, 5000, 16);
    struct told running = {0}, waiting = {0};
    until_connected(pg, true);
    assert_int_equal(run_sql(pg, "SELECT pg_sleep(30)", &running), 0);
    assert_int_equal(run_sql(pg, "SELECT 1", &waiting), 0);
    close_pool(pg);
    assert_int_equal(running.count, 1);
    assert_int_equal(running.status, TG_ERR_DISCONNECTED);
    assert_int_equal(waiting.count, 1);
    assert_int_equal(waiting.status, TG_ERR_DISCONNECTED);
}

static void bad_settings_are_refused(void **state)
{
    struct tg_pg *pg = NULL;
    struct tg_pg_spec spec = {
        .conninfo = private_conninfo, .connections = 0, .statement_ms = 1, .queue_max = 1};
    assert_int_equal(tg_pg_open(&loop, &spec, &pg), TG_ERR_RANGE);
    spec.connections = 33;
    assert_int_equal(tg_pg_open(&loop, &spec, &pg), TG_ERR_RANGE);
    spec.connections = 1;
    spec.conninfo = "postgres://%zz";
    assert_int_equal(tg_pg_open(&loop, &spec, &pg), TG_ERR_SETTING);
    spec.conninfo = "host=/nowhere dbname=x";
    assert_int_equal(tg_pg_open(&loop, &spec, &pg), 0); /* it may come up later */
    for (int i = 0; i < 20; i++) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_false(tg_pg_connected(pg));
    close_pool(pg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_once_with_their_token),
        cmocka_unit_test(parameters_are_copied),
        cmocka_unit_test(more_statements_than_connections_wait_their_turn),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(a_commit_that_fails_is_no_success),
        cmocka_unit_test(serialization_failures_are_repeated_a_few_times),
        cmocka_unit_test(a_late_answer_is_unknown_and_the_pool_recovers),
        cmocka_unit_test(a_killed_backend_is_unknown),
        cmocka_unit_test(a_server_that_went_away_comes_back),
        cmocka_unit_test(closing_tells_what_was_under_way),
        cmocka_unit_test(bad_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
