/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/log.h"

#include "lib/pure/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

enum { CAPTURE_BYTES = 8192 };

static char captured[CAPTURE_BYTES];
static int saved_stderr;
static int capture_pipe[2];

static void begin_capture(void)
{
    assert_int_equal(pipe(capture_pipe), 0);
    saved_stderr = dup(STDERR_FILENO);
    dup2(capture_pipe[1], STDERR_FILENO);
}

static size_t end_capture(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(capture_pipe[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(capture_pipe[0], captured + length, sizeof(captured) - 1 - length)) > 0) {
        length += (size_t)got;
    }
    close(capture_pipe[0]);
    captured[length] = '\0';
    return length;
}

/* The captured text as exactly one JSON line. */
static json_t *one_line(size_t length)
{
    assert_true(length > 0);
    assert_ptr_equal(strchr(captured, '\n'), captured + length - 1);
    json_t *line = json_loads(captured, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(line);
    return line;
}

static const char *text_of(json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));
    assert_non_null(text);
    return text;
}

static void a_line_is_one_json_object(void **state)
{
    tg_log_open("reserve", "reserve-a1", TG_LOG_INFO);
    begin_capture();
    tg_log(TG_LOG_WARN, "gate.armed", TG_TEXT_FIELD("sale", "sku_991"),
           TG_NUMBER_FIELD("epoch", -3));
    json_t *line = one_line(end_capture());
    assert_string_equal(text_of(line, "level"), "warn");
    assert_string_equal(text_of(line, "daemon"), "reserve");
    assert_string_equal(text_of(line, "instance"), "reserve-a1");
    assert_string_equal(text_of(line, "event"), "gate.armed");
    assert_string_equal(text_of(line, "sale"), "sku_991");
    assert_int_equal(json_integer_value(json_object_get(line, "epoch")), -3);
    assert_int_equal(strlen(text_of(line, "ts")), 24);
    json_decref(line);
}

static void lines_below_the_level_are_dropped(void **state)
{
    tg_log_open("reserve", "a", TG_LOG_WARN);
    begin_capture();
    tg_log(TG_LOG_INFO, "app.ready");
    tg_log(TG_LOG_DEBUG, "app.ready");
    assert_int_equal(end_capture(), 0);
}

static void hostile_text_stays_one_valid_line(void **state)
{
    tg_log_open("edge", "a", TG_LOG_INFO);
    begin_capture();
    tg_log(TG_LOG_INFO, "x.y",
           TG_TEXT_FIELD("value", "a\"b\\c\nd\x01\x7f\xff\xc3\xa9\xed\xa0\x80\xf0\x9f"));
    json_t *line = one_line(end_capture());
    assert_string_equal(text_of(line, "value"), "a\"b\\c\nd\x01\x7f\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd"
                                                "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    json_decref(line);
}

static void long_values_are_cut_and_the_line_stays_valid(void **state)
{
    static char value[3 * TG_MAX_LOG_LINE_BYTES];
    tg_log_open("edge", "a", TG_LOG_INFO);
    for (size_t extra = 0; extra < 8; extra++) {
        memset(value, '\n', sizeof(value));
        value[TG_MAX_LOG_LINE_BYTES + extra] = '\0';
        memset(value, 'x', extra);
        begin_capture();
        tg_log(TG_LOG_INFO, "x.y", TG_TEXT_FIELD("value", value), TG_NUMBER_FIELD("after", 1));
        size_t length = end_capture();
        assert_true(length <= TG_MAX_LOG_LINE_BYTES);
        json_decref(one_line(length));
    }
}

static void a_missing_text_is_empty(void **state)
{
    begin_capture();
    tg_log(TG_LOG_ERROR, "x.y", TG_TEXT_FIELD("value", NULL));
    json_t *line = one_line(end_capture());
    assert_string_equal(text_of(line, "value"), "");
    json_decref(line);
}

static void a_step_names_the_trace_only_when_there_is_one(void **state)
{
    tg_log_open("ledger", "a", TG_LOG_INFO);
    begin_capture();
    tg_log_step("reservation.recorded", "sku_991", "res_1", "");
    json_t *line = one_line(end_capture());
    assert_string_equal(text_of(line, "reservation"), "res_1");
    assert_null(json_object_get(line, "traceparent"));
    json_decref(line);
    begin_capture();
    tg_log_step("reservation.recorded", "sku_991", "res_1", "00-1-2-01");
    line = one_line(end_capture());
    assert_string_equal(text_of(line, "traceparent"), "00-1-2-01");
    json_decref(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_one_json_object),
        cmocka_unit_test(lines_below_the_level_are_dropped),
        cmocka_unit_test(hostile_text_stays_one_valid_line),
        cmocka_unit_test(long_values_are_cut_and_the_line_stays_valid),
        cmocka_unit_test(a_missing_text_is_empty),
        cmocka_unit_test(a_step_names_the_trace_only_when_there_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
