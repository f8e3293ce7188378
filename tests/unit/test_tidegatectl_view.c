/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "tools/tidegatectl/state.h"
#include "tools/tidegatectl/view.h"

#include <stdlib.h>
#include <string.h>

static const struct ctl_options plain = {.color = false};
static const struct ctl_options coloured = {.color = true};
static char *text;

static const char *screen(const struct ctl_options *options, const struct ctl_view *view,
                          int64_t now_ms)
{
    size_t length = 0;
    free(text);
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    ctl_view_screen(out, options, view, (struct tg_mono){now_ms});
    assert_int_equal(fclose(out), 0);
    return text;
}

static const char *line(const struct ctl_view *view, int64_t now_ms)
{
    size_t length = 0;
    free(text);
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    ctl_view_line(out, view, (struct tg_mono){now_ms});
    assert_int_equal(fclose(out), 0);
    return text;
}

static struct ctl_view heard_at(int64_t ms)
{
    const struct tg_mono now = {ms};
    struct ctl_view view = {.sale = "demo"};
    Tidegate__V1__ItemStock items[2] = {TIDEGATE__V1__ITEM_STOCK__INIT,
                                        TIDEGATE__V1__ITEM_STOCK__INIT};
    Tidegate__V1__ItemStock *pointers[2] = {&items[0], &items[1]};
    Tidegate__V1__Stock stock = TIDEGATE__V1__STOCK__INIT;
    Tidegate__V1__Board board = TIDEGATE__V1__BOARD__INIT;
    Tidegate__V1__Pace pace = TIDEGATE__V1__PACE__INIT;
    Tidegate__V1__PauseEntry entry = TIDEGATE__V1__PAUSE_ENTRY__INIT;
    Tidegate__V1__PauseEntry *entries[1] = {&entry};
    Tidegate__V1__SaleState state = TIDEGATE__V1__SALE_STATE__INIT;
    items[0].initial = 100, items[0].free = 60, items[0].held = 30, items[0].settled = 10;
    items[1].initial = 10, items[1].free = 10;
    stock.n_items = 2, stock.items = pointers, stock.armed = true, stock.gate_now_ms = 1000,
    stock.attested_until_ms = 3500;
    board.waiting = 4711, board.watermark = 42, board.term = 3;
    pace.pace_milli = 1500, pace.limiting = (char[]){"start\033[2J"};
    entry.cause = (char[]){"price label\nis wrong"};
    state.phase = TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED, state.epoch = 7,
    state.generation = 2, state.n_pauses = 1;
    state.pauses = entries, state.ledger_now_ms = 10000, state.last_clean_ms = 9200,
    state.clean_rounds = 12;
    ctl_view_stock(&view, &stock, now);
    ctl_view_board(&view, &board, now);
    ctl_view_pace(&view, &pace, now);
    ctl_view_state(&view, &state, now);
    return view;
}

static void what_was_heard_is_shown(void **state)
{
    struct ctl_view view = heard_at(50000);
    const char *shown = screen(&plain, &view, 50500);
    assert_non_null(strstr(shown, "demo  paused  generation 2  epoch 7"));
    assert_non_null(strstr(shown, "sold 10  held 30  free 70  of 110"));
    assert_non_null(strstr(shown, "proved for another 2.0 s"));
    assert_non_null(strstr(shown, "waiting 4711  let through 42  term 3"));
    assert_non_null(strstr(shown, "1.500/s"));
    assert_non_null(strstr(shown, "12 clean rounds in a row, the last 0.8 s ago"));
    assert_non_null(strstr(shown, "price label?is wrong"));
    assert_null(strchr(shown, '\033')); /* no colour asked for, and none smuggled in by a peer */
    assert_null(strstr(shown, "last heard"));
    assert_non_null(strstr(screen(&coloured, &view, 50500), "\033[31m"));
}

static void old_numbers_say_so(void **state)
{
    struct ctl_view view = heard_at(50000);
    const char *shown = screen(&plain, &view, 50000 + 3001);
    assert_non_null(strstr(shown, "last heard 3.0 s ago"));
    assert_non_null(strstr(shown, "not proved: it sells nothing"));
    assert_string_equal(
        line(&view, 50000 + 3001),
        "demo unknown free=- held=- sold=- waiting=- watermark=- paceMilli=- epoch=- "
        "cleanRounds=- pauses=-\n");
}

static void nothing_heard_is_unknown_and_not_zero(void **state)
{
    const struct ctl_view view = {.sale = "demo"};
    const char *shown = screen(&plain, &view, 1);
    assert_non_null(strstr(shown, "demo  unknown"));
    assert_non_null(strstr(shown, "not heard of yet"));
    assert_null(strstr(shown, "free 0"));
    assert_non_null(strstr(line(&view, 1), "free=-"));
}

static void an_unarmed_gate_has_no_stock(void **state)
{
    struct ctl_view view = heard_at(50000);
    view.gate_armed = false;
    assert_non_null(strstr(screen(&plain, &view, 50001), "the gate is not armed"));
    assert_non_null(strstr(line(&view, 50001), "free=- held=- sold=- waiting=4711"));
}

static void lines_and_json_agree(void **state)
{
    struct ctl_view view = heard_at(50000);
    assert_string_equal(
        line(&view, 50001),
        "demo paused free=70 held=30 sold=10 waiting=4711 watermark=42 paceMilli=1500 epoch=7 "
        "cleanRounds=12 pauses=1\n");
    json_t *object = ctl_view_json(&view, (struct tg_mono){50001});
    assert_int_equal(json_integer_value(json_object_get(object, "free")), 70);
    assert_string_equal(json_string_value(json_object_get(object, "phase")), "paused");
    json_decref(object);
    object = ctl_view_json(&view, (struct tg_mono){60000});
    assert_true(json_is_null(json_object_get(object, "free")));
    json_decref(object);
}

static void a_bar_is_never_longer_than_its_place(void **state)
{
    struct ctl_view view = heard_at(50000);
    static const uint64_t parts[][3] = {{0, 0, 0},           {1, 999999, 0}, {999999, 1, 0},
                                        {500000, 500000, 0}, {1, 1, 999998}, {0, 0, 1000000}};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        view.settled = parts[i][0], view.held = parts[i][1], view.free = parts[i][2];
        view.initial = parts[i][0] + parts[i][1] + parts[i][2];
        const char *bar = strchr(screen(&plain, &view, 50001), '[');
        assert_non_null(bar);
        assert_int_equal(strchr(bar, ']') - bar, 41);
    }
}

static void values_have_their_units(void **state)
{
    char value[CTL_VALUE_BYTES];
    static const struct {
        int64_t ms;
        const char *text;
    } durations[] = {{0, "0s"},      {250, "250ms"},  {1500, "1500ms"},
                     {30000, "30s"}, {600000, "10m"}, {7200000, "2h"}};
    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        ctl_duration_text(durations[i].ms, value);
        assert_string_equal(value, durations[i].text);
    }
    ctl_pace_text(1000000, value);
    assert_string_equal(value, "1000/s");
    ctl_pace_text(1, value);
    assert_string_equal(value, "0.001/s");
    ctl_time_text(0, value);
    assert_string_equal(value, "never");
    ctl_time_text(1796119200123, value);
    assert_string_equal(value, "2026-12-01T10:00:00.123Z");
}

static void text_for_people_is_printable(void **state)
{
    char shown[8];
    ctl_printable("a\033b", 3, shown, sizeof(shown));
    assert_string_equal(shown, "a?b");
    ctl_printable("\xc3\xa9\xff", 3, shown, sizeof(shown));
    assert_string_equal(shown, "\xc3\xa9?");
    ctl_printable("1234567\xc3\xa9", 9, shown, sizeof(shown));
    assert_string_equal(shown, "1234567");
    ctl_printable("123456\xc3\xa9", 8, shown, sizeof(shown)); /* never half a character */
    assert_string_equal(shown, "123456");
    ctl_printable("", 0, shown, sizeof(shown));
    assert_string_equal(shown, "");
}

static int forget(void **state)
{
    free(text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_heard_is_shown),
        cmocka_unit_test(old_numbers_say_so),
        cmocka_unit_test(nothing_heard_is_unknown_and_not_zero),
        cmocka_unit_test(an_unarmed_gate_has_no_stock),
        cmocka_unit_test(lines_and_json_agree),
        cmocka_unit_test(a_bar_is_never_longer_than_its_place),
        cmocka_unit_test(values_have_their_units),
        cmocka_unit_test(text_for_people_is_printable),
    };
    return cmocka_run_group_tests(tests, NULL, forget);
}
