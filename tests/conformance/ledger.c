/* SPDX-License-Identifier: Apache-2.0
 * The ledger: the simulator's model, and the shipped SQL functions on a real PostgreSQL. */
#include "tests/sim/ledger.h"
#include "tests/conformance/ledger_server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RESERVATIONS = 9, USERS = 4, COMMANDS = 8, COMMAND_FROM = 1000, PAYMENTS = 6, PRICE = 4900 };

static struct {
    struct ledger ledger;
    int64_t now_ms;
    uint64_t name; /* of this sequence: part of every id */
    uint32_t rounds;
    struct conformance_chance chance;
    struct conformance_side *what, *model;
} world;

static uint32_t below(uint32_t bound)
{
    return conformance_below(&world.chance, bound);
}

static bool percent(uint32_t chance)
{
    return conformance_percent(&world.chance, chance);
}

/* ---- texts ---- */

static const char *id_text(uint32_t number)
{
    static char texts[4][40];
    static uint32_t turn;
    char *text = texts[turn++ % 4];
    (void)snprintf(text, sizeof texts[0], "res_%018" PRIu64 "%08" PRIu32, world.name, number);
    return text;
}

/* Of a pause or command: a reservation's without "res_". */
static const char *pause_text(uint32_t number)
{
    return id_text(number) + 4;
}

/* enum tg_phase as the ledger spells it. */
static const char *phase_text(enum tg_phase phase)
{
    switch (phase) {
    case TG_PHASE_UNKNOWN:
        break;
    case TG_PHASE_SCHEDULED:
        return "scheduled";
    case TG_PHASE_OPEN:
        return "open";
    case TG_PHASE_PAUSED:
        return "paused";
    case TG_PHASE_SOLD_OUT:
        return "sold_out";
    case TG_PHASE_CLOSED:
        return "closed";
    }
    return "";
}

static const char *state_text(uint8_t state)
{
    static const char *const names[] = {"pending", "confirmed", "expired", "cancelled"};
    return names[state];
}

static int by_unit(const struct ledger_unit *a, const struct ledger_unit *b)
{
    return a->item != b->item ? a->item - b->item : a->unit - b->unit;
}

/* Ordered as units_text and slots_text are. */
static void say_units(const struct ledger_unit *units, uint8_t count, bool live_only, bool slots)
{
    struct ledger_unit sorted[SIM_HOLD_UNITS];
    uint8_t n = 0;
    for (uint8_t i = 0; i < count; i++) {
        uint8_t at = n;
        if (live_only && !units[i].live) {
            continue;
        }
        for (; at > 0 && by_unit(&sorted[at - 1], &units[i]) > 0; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = units[i];
        n++;
    }
    for (uint8_t i = 0; i < n; i++) {
        conformance_say(world.model, i > 0 ? "," : "");
        if (slots) {
            conformance_say(world.model, "%u", sorted[i].slot);
        } else {
            conformance_say(world.model, "%u:%u", sorted[i].item, sorted[i].unit);
        }
    }
}

__attribute__((format(printf, 1, 2))) static void what(const char *format, ...)
{
    char text[400];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    conformance_line(world.what);
    conformance_say(world.what, "%" PRId64 " %s", world.now_ms, text);
    conformance_line(world.model);
}

/* ---- record ---- */

static bool is_free(uint8_t item, uint8_t unit)
{
    for (uint16_t i = 0; i < world.ledger.row_count; i++) {
        const struct ledger_row *row = &world.ledger.rows[i];
        for (uint8_t n = 0; row->present && n < row->unit_count; n++) {
            if (row->units[n].live && row->units[n].item == item && row->units[n].unit == unit) {
                return false;
            }
        }
    }
    return true;
}

/* No unit and no slot twice: the wire refuses such a hold. */
static void random_units(struct ledger_hold *hold)
{
    const bool careful = percent(80);
    hold->unit_count = (uint8_t)(1 + percent(25));
    const uint8_t slot = (uint8_t)below(world.ledger.limit);
    for (uint8_t n = 0; n < hold->unit_count; n++) {
        struct ledger_unit *unit = &hold->units[n];
        uint32_t tries = 0;
        do {
            unit->item = (uint8_t)(percent(98) ? below(world.ledger.item_count) : below(3));
            unit->unit = (uint8_t)(percent(97) ? below(world.ledger.units[unit->item % SIM_ITEMS])
                                               : below(SIM_UNITS));
        } while ((careful && ++tries < 20 && !is_free(unit->item, unit->unit)) ||
                 (n > 0 && by_unit(unit, &hold->units[0]) == 0));
        unit->slot = (uint8_t)((slot + n) % (world.ledger.limit + (uint32_t)percent(20) + n));
    }
}

static void add_array(const struct ledger_hold *holds, uint32_t count, const char *type,
                      void (*add)(const struct ledger_hold *hold, uint32_t at, uint8_t unit))
{
    const char *comma = "";
    ledger_server_add(", ARRAY[");
    for (uint32_t i = 0; i < count; i++) {
        ledger_server_add("%s", comma);
        add(&holds[i], i, 0);
        comma = ",";
    }
    ledger_server_add("]::%s[]", type);
}

static void add_units(const struct ledger_hold *holds, uint32_t count, const char *type,
                      void (*add)(const struct ledger_hold *hold, uint32_t at, uint8_t unit))
{
    const char *comma = "";
    ledger_server_add(", ARRAY[");
    for (uint32_t i = 0; i < count; i++) {
        for (uint8_t n = 0; n < holds[i].unit_count; n++) {
            ledger_server_add("%s", comma);
            add(&holds[i], i, n);
            comma = ",";
        }
    }
    ledger_server_add("]::%s[]", type);
}

static void add_one(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("1");
}

static void add_epoch(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("%" PRIu64, hold->epoch);
}

static void add_id(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("'%s'", id_text(hold->id));
}

static void add_user(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("'\\x75%02x'", hold->user);
}

static void add_place(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("'\\x00000000000000000000000000000000'");
}

static void add_ordinal(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("%u", at + 1);
}

static void add_item(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("%u", hold->units[unit].item);
}

static void add_unit(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("%u", hold->units[unit].unit);
}

static void add_slot(const struct ledger_hold *hold, uint32_t at, uint8_t unit)
{
    ledger_server_add("%u", hold->units[unit].slot);
}

static void ask_record(const struct ledger_hold *holds, uint32_t count)
{
    ledger_server_add(
        "SELECT outcome, reason, CASE WHEN outcome <> 'refused' THEN state || ' ' || expires_ms "
        "ELSE '' END, CASE WHEN outcome = 'already' THEN units ELSE '' END, epoch FROM "
        "tidegate.record_batch('s'");
    add_array(holds, count, "bigint", add_one);
    add_array(holds, count, "bigint", add_epoch);
    add_array(holds, count, "text", add_id);
    add_array(holds, count, "bytea", add_user);
    add_array(holds, count, "bytea", add_place);
    add_array(holds, count, "bigint", add_one);
    add_array(holds, count, "bytea", add_place);
    add_units(holds, count, "integer", add_ordinal);
    add_units(holds, count, "text", add_id);
    add_units(holds, count, "bytea", add_user);
    add_units(holds, count, "integer", add_item);
    add_units(holds, count, "integer", add_unit);
    add_units(holds, count, "integer", add_slot);
    ledger_server_add(") ORDER BY ordinal");
    ledger_server_ask();
}

static void say_recorded(const struct ledger_answer *answer)
{
    static const char *const outcomes[] = {"recorded", "already", "refused"};
    const bool refused = answer->outcome == LEDGER_REFUSED;
    conformance_say(world.model, "%s %s ", outcomes[answer->outcome],
                    tg_reason_code(answer->reason));
    if (!refused) {
        conformance_say(world.model, "%s %" PRId64, state_text(answer->state), answer->expires_ms);
    }
    conformance_say(world.model, " ");
    if (answer->outcome == LEDGER_KNOWN) {
        say_units(answer->units, answer->unit_count, false, false);
    }
    conformance_say(world.model, " %" PRIu64, world.ledger.epoch);
}

/* A batch: decided in the order of ids, answered in the order asked. */
static void record(void)
{
    enum { HOLDS = 3 };
    struct ledger_hold holds[HOLDS];
    struct ledger_answer answers[HOLDS];
    uint32_t order[HOLDS] = {0, 1, 2};
    const uint32_t count = percent(60) ? 1 : 1 + below(HOLDS);
    const uint64_t epoch = world.ledger.epoch - percent(4);
    what("record %u of epoch %" PRIu64, count, epoch);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = below(RESERVATIONS);
        holds[i] = (struct ledger_hold){.id = (uint16_t)number,
                                        .user = (uint8_t)(number % USERS),
                                        .key = number + 1,
                                        .epoch = epoch,
                                        .window = 1};
        random_units(&holds[i]);
        conformance_say(world.what, " [%u", number);
        for (uint8_t n = 0; n < holds[i].unit_count; n++) {
            conformance_say(world.what, " %u:%u slot %u", holds[i].units[n].item,
                            holds[i].units[n].unit, holds[i].units[n].slot);
        }
        conformance_say(world.what, "]");
        for (uint32_t at = i; at > 0 && holds[order[at - 1]].id > number; at--) {
            order[at] = order[at - 1];
            order[at - 1] = i;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ledger_record(&world.ledger, world.now_ms, &holds[order[i]], &answers[order[i]]);
        if (answers[order[i]].reason == TG_REASON_UNIT_CONFLICT) {
            ledger_pause(&world.ledger, holds[order[i]].id);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        conformance_say(world.model, i > 0 ? "; " : "");
        say_recorded(&answers[i]);
    }
    ask_record(holds, count);
}

/* ---- one reservation ---- */

static void say_answer(const struct ledger_answer *answer)
{
    if (answer->reason == TG_REASON_RESERVATION_UNKNOWN) {
        conformance_say(world.model, "%s  0  f 0", tg_reason_code(answer->reason));
        return;
    }
    conformance_say(world.model, "%s %s %" PRId64 " ", tg_reason_code(answer->reason),
                    state_text(answer->state), answer->expires_ms);
    say_units(answer->units, answer->unit_count, false, false);
    conformance_say(world.model, " %s %" PRIu64, answer->replayed ? "t" : "f", answer->epoch);
}

static void ask_answer(void)
{
    ledger_server_add(" AS r");
    ledger_server_ask();
}

static void begin_answer(const char *function, uint32_t number)
{
    ledger_server_add("SELECT r.reason, r.state, r.expires_ms, r.units, r.replayed, r.epoch FROM "
                      "tidegate.%s('%s'",
                      function, id_text(number));
}

static void confirm(void)
{
    struct ledger_answer answer;
    const uint16_t number = (uint16_t)below(RESERVATIONS);
    const uint32_t payment = 1 + (percent(80) ? number % PAYMENTS : below(PAYMENTS));
    const uint8_t units = world.ledger.rows[number].unit_count;
    what("confirm %u with payment %u", number, payment);
    ledger_confirm(&world.ledger, world.now_ms, number, payment, &answer);
    say_answer(&answer);
    begin_answer("confirm_reservation", number);
    ledger_server_add(", 'pay_%018" PRIu64 "%02u', %u, 'EUR', 'ord_%s')", world.name, payment,
                      PRICE * (units > 0 ? units : 1u), pause_text(number));
    ask_answer();
}

static void extend(void)
{
    struct ledger_answer answer;
    const uint16_t number = (uint16_t)below(RESERVATIONS);
    what("extend %u", number);
    ledger_extend(&world.ledger, world.now_ms, number, &answer);
    say_answer(&answer);
    begin_answer("extend_reservation", number);
    ledger_server_add(")");
    ask_answer();
}

static void cancel_or_read(void)
{
    struct ledger_answer answer;
    const uint16_t number = (uint16_t)below(RESERVATIONS);
    const bool cancels = percent(60);
    what("%s %u", cancels ? "cancel" : "read", number);
    if (cancels) {
        ledger_cancel(&world.ledger, number, &answer);
    } else {
        ledger_read(&world.ledger, number, &answer);
    }
    say_answer(&answer);
    begin_answer(cancels ? "cancel_reservation" : "read_reservation", number);
    ledger_server_add(", NULL)");
    ask_answer();
}

/* ---- the sweeper's ---- */

/* Some reservations, each once, as an array's elements. */
static uint8_t some(uint16_t out_ids[SIM_PAGE])
{
    uint8_t count = 0;
    for (uint16_t number = (uint16_t)below(3); number < RESERVATIONS && count < SIM_PAGE;
         number = (uint16_t)(number + 1 + below(3))) {
        out_ids[count++] = number;
    }
    return count;
}

static void expire(void)
{
    uint16_t ids[SIM_PAGE];
    struct ledger_hold holds[SIM_PAGE];
    uint32_t final = 0;
    struct ledger_expiry expiry = {
        .with_holds = percent(40), .epoch = world.ledger.epoch - percent(8), .count = some(ids)};
    what("expire%s of epoch %" PRIu64 ":", expiry.with_holds ? " with tombstones" : "",
         expiry.epoch);
    for (uint8_t i = 0; i < expiry.count; i++) {
        holds[i] = (struct ledger_hold){
            .id = ids[i], .user = (uint8_t)(ids[i] % USERS), .key = ids[i] + 1u, .window = 1};
        expiry.holds[i] = holds[i];
        conformance_say(world.what, " %u", ids[i]);
    }
    const enum tg_reason reason = ledger_expire(&world.ledger, world.now_ms, &expiry, &final);
    conformance_say(world.model, "%s %u", tg_reason_code(reason), final);
    const uint32_t tombs = expiry.with_holds ? expiry.count : 0;
    ledger_server_add("SELECT max(reason), count(*) FILTER (WHERE state NOT IN ('', 'pending')) "
                      "FROM tidegate.expire_reservations('s', 1, %" PRIu64,
                      expiry.epoch);
    add_array(holds, expiry.count - tombs, "text", add_id);
    add_array(holds, tombs, "text", add_id);
    add_array(holds, tombs, "bytea", add_user);
    add_array(holds, tombs, "bytea", add_place);
    add_array(holds, tombs, "bigint", add_one);
    add_array(holds, tombs, "bytea", add_place);
    ledger_server_add(")");
    ledger_server_ask();
}

static void obeyed(void)
{
    struct ledger_orders orders = {.epoch = world.ledger.epoch - percent(8)};
    orders.count = some(orders.ids);
    what("obeyed in epoch %" PRIu64 ":", orders.epoch);
    ledger_server_add("SELECT reason FROM tidegate.obeyed_orders('s', %" PRIu64 ", ARRAY[",
                      orders.epoch);
    for (uint8_t i = 0; i < orders.count; i++) {
        const bool sold = world.ledger.rows[orders.ids[i]].state == LEDGER_CONFIRMED;
        orders.kinds[i] = sold == percent(90) ? LEDGER_SETTLE : LEDGER_RELEASE;
        ledger_server_add("%s'%s'", i > 0 ? "," : "", id_text(orders.ids[i]));
        conformance_say(world.what, " %s %u",
                        orders.kinds[i] == LEDGER_SETTLE ? "settle" : "release", orders.ids[i]);
    }
    ledger_server_add("]::text[], ARRAY[");
    for (uint8_t i = 0; i < orders.count; i++) {
        ledger_server_add("%s'%s'", i > 0 ? "," : "",
                          orders.kinds[i] == LEDGER_SETTLE ? "settle" : "release");
    }
    ledger_server_add("]::text[])");
    ledger_server_ask();
    conformance_say(world.model, "%s", tg_reason_code(ledger_obeyed(&world.ledger, &orders)));
}

static void due(void)
{
    enum { LIMIT = 4 };
    struct ledger_due found;
    const uint64_t after = below(3) * 3, lapsed_after = world.ledger.lapsed_after;
    what("due after %" PRIu64 ", lapsed after %" PRIu64, after, lapsed_after);
    ledger_due(&world.ledger, world.now_ms, after, LIMIT, &found);
    conformance_say(world.model, " %" PRIu64, found.orders.epoch);
    for (uint8_t i = 0; i < found.lapsed_count; i++) {
        conformance_say(world.model, "; lapsed %u", found.lapsed[i]);
    }
    for (uint8_t i = 0; i < found.orders.count; i++) {
        conformance_say(world.model, "; %s %u",
                        found.orders.kinds[i] == LEDGER_SETTLE ? "settle" : "release",
                        found.orders.ids[i]);
    }
    ledger_server_add(
        "SELECT kind, CASE WHEN kind = '' THEN epoch ELSE right(id, 8)::bigint END FROM "
        "tidegate.due_work('s', '%s', '%s', %d)",
        after > 0 ? id_text((uint32_t)after - 1) : "",
        lapsed_after > 0 ? id_text((uint32_t)lapsed_after - 1) : "", LIMIT);
    ledger_server_ask();
}

static void snapshot(void)
{
    struct ledger_page page;
    const uint64_t after = below(3) * 3, epoch = world.ledger.epoch - percent(8);
    what("snapshot of epoch %" PRIu64 " after %" PRIu64, epoch, after);
    ledger_snapshot(&world.ledger, epoch, after, SIM_SNAPSHOT, &page);
    conformance_say(world.model, "%s", tg_reason_code(page.reason));
    for (uint8_t i = 0; i < page.count; i++) {
        const struct ledger_row *row = &page.rows[i];
        conformance_say(world.model, "; %u %s %" PRId64 " ", row->id, state_text(row->state),
                        row->expires_ms);
        say_units(row->units, row->unit_count, true, false);
        conformance_say(world.model, " ");
        say_units(row->units, row->unit_count, true, true);
    }
    ledger_server_add(
        "SELECT CASE WHEN id = '' THEN reason ELSE concat_ws(' ', right(id, 8)::int, state, "
        "expires_ms, units, slots) END FROM tidegate.snapshot_page('s', %" PRIu64 ", '%s', %d)",
        epoch, after > 0 ? id_text((uint32_t)after - 1) : "", SIM_SNAPSHOT);
    ledger_server_ask();
}

/* ---- the sale ---- */

static void arm(void)
{
    const uint64_t epoch = world.ledger.epoch - percent(10);
    const char *run_id = percent(80) ? "run-1" : "run-2";
    what("armed in epoch %" PRIu64 " on %s", epoch, run_id);
    conformance_say(world.model, "%s",
                    tg_reason_code(ledger_arm(&world.ledger, epoch, run_id, "set-1")));
    ledger_server_add("SELECT reason FROM tidegate.armed_gate('s', %" PRIu64 ", '%s', 'set-1')",
                      epoch, run_id);
    ledger_server_ask();
}

static void check(void)
{
    const uint64_t epoch = world.ledger.epoch - percent(5);
    const enum ledger_check outcome = percent(80)   ? LEDGER_CHECK_CLEAN
                                      : percent(50) ? LEDGER_CHECK_VOID
                                                    : LEDGER_CHECK_ALARM;
    static const char *const names[] = {"clean", "void", "alarm"};
    what("check of epoch %" PRIu64 ": %s", epoch, names[outcome]);
    ledger_append_check(&world.ledger, world.now_ms, epoch, outcome);
    ledger_server_add("SELECT reason FROM tidegate.append_check('s', %" PRIu64
                      ", 'checker', %u, '%s', '', 0, 0, 0, 0, 0, 0, 5)",
                      epoch, world.rounds++, names[outcome]);
    ledger_server_ask();
}

static void tick(void)
{
    const uint8_t before = world.ledger.stage;
    what("tick");
    ledger_tick(&world.ledger, world.now_ms);
    conformance_say(world.model, "%u", world.ledger.stage != before);
    ledger_server_add("SELECT tidegate.tick_sales()");
    ledger_server_ask();
}

static void name_pauses(struct ledger_judge *judge)
{
    for (uint32_t i = 0; i < world.ledger.pause_count; i++) {
        if (percent(92)) {
            judge->pauses[judge->pause_count++] = world.ledger.pauses[i];
        }
    }
    if (percent(20) && judge->pause_count < SIM_PAUSES) {
        judge->pauses[judge->pause_count++] = (sim_pause)(COMMAND_FROM + below(COMMANDS));
    }
}

static void judge(void)
{
    static const char *const names[] = {"pause", "resume", "rebuild", "close"};
    const uint32_t draw = below(100);
    const uint32_t number = below(COMMANDS);
    struct ledger_judge command = {.kind = draw < 30   ? LEDGER_PAUSE
                                           : draw < 75 ? LEDGER_RESUME
                                           : draw < 97 ? LEDGER_REBUILD
                                                       : LEDGER_CLOSE,
                                   .number = (uint16_t)number,
                                   .pause = (sim_pause)(COMMAND_FROM + number),
                                   .sequence = world.ledger.control_sequence - percent(15)};
    if (command.kind == LEDGER_REBUILD && world.ledger.epoch + 1 >= SIM_EPOCHS) {
        command.kind = LEDGER_PAUSE;
    }
    if (command.kind == LEDGER_RESUME) {
        name_pauses(&command);
    }
    what("%s by command %u at sequence %" PRIu64, names[command.kind], number, command.sequence);
    const bool repeated = world.ledger.judged[number / 64] >> number % 64 & 1u;
    const enum tg_reason reason = ledger_judge(&world.ledger, world.now_ms, &command);
    conformance_say(world.model, "%s", repeated ? "repeated" : tg_reason_code(reason));
    ledger_server_add("SELECT CASE WHEN repeated THEN 'repeated' ELSE reason END FROM "
                      "tidegate.judge_command('%s', 's', 1, '%s', %" PRIu64
                      ", 'operator', 'c', 's', ARRAY[",
                      pause_text(COMMAND_FROM + number), names[command.kind], command.sequence);
    for (uint32_t i = 0; i < command.pause_count; i++) {
        ledger_server_add("%s'%s'", i > 0 ? "," : "", pause_text(command.pauses[i]));
        conformance_say(world.what, " %u", command.pauses[i]);
    }
    ledger_server_add("]::text[], 0, 'because', false, NULL)");
    ledger_server_ask();
}

/* ---- sequences ---- */

static void make_sale(void)
{
    struct ledger *ledger = &world.ledger;
    memset(ledger, 0, sizeof *ledger);
    ledger->item_count = (uint8_t)(1 + percent(40));
    ledger->limit = (uint8_t)(1 + below(2));
    ledger->hold_ms = 300 + below(700);
    ledger->grace_ms = below(200);
    ledger->extend_ms = 200 + below(1000);
    ledger->extensions_max = below(3);
    ledger->lease_ms = 3000;
    ledger->epoch = 1;
    ledger->control_sequence = 1;
    ledger->stage = TG_PHASE_SCHEDULED;
    what("apply");
    ledger_server_add(
        "SELECT reason FROM tidegate.judge_command('%s', 's', 0, 'apply', 0, 'operator', 'c', 's', "
        "'{}', 0, '', false, conformance.definition() || '{\"limit_per_buyer\": %u, "
        "\"hold_ms\": %" PRId64 ", \"grace_ms\": %" PRId64 ", \"extend_ms\": %" PRId64
        ", \"extensions_max\": %u, \"proof_lease_ms\": %" PRId64 ", \"items\": [",
        pause_text(COMMAND_FROM + COMMANDS), ledger->limit, ledger->hold_ms, ledger->grace_ms,
        ledger->extend_ms, ledger->extensions_max, ledger->lease_ms);
    for (uint8_t item = 0; item < ledger->item_count; item++) {
        ledger->units[item] = (uint8_t)(2 + below(5));
        ledger_server_add("%s{\"sku\": \"sku-%u\", \"units\": %u, \"price_minor\": %u, "
                          "\"currency\": \"EUR\"}",
                          item > 0 ? "," : "", item, ledger->units[item], PRICE);
    }
    ledger_server_add("]}')");
    ledger_server_ask();
}

static void operation(void)
{
    static const struct {
        uint32_t weight;
        void (*run)(void);
    } operations[] = {{34, record}, {16, confirm}, {8, extend}, {9, cancel_or_read},
                      {10, expire}, {8, obeyed},   {4, due},    {4, snapshot},
                      {4, arm},     {6, check},    {4, tick},   {9, judge}};
    enum { KINDS = sizeof operations / sizeof operations[0] };
    uint32_t total = 0, at = 0;
    for (uint32_t i = 0; i < KINDS; i++) {
        total += operations[i].weight;
    }
    uint32_t draw = below(total);
    while (draw >= operations[at].weight) {
        draw -= operations[at++].weight;
    }
    operations[at].run();
}

/* ---- what is stored ---- */

static void compare_reservations(void)
{
    const char *separator = "";
    conformance_line(world.model);
    for (uint16_t i = 0; i < world.ledger.row_count; i++) {
        const struct ledger_row *row = &world.ledger.rows[i];
        if (!row->present) {
            continue;
        }
        conformance_say(world.model, "%s%u %s %s %" PRId64 " %u %" PRIu64 " %s pay%u %" PRIu64 " ",
                        separator, i, state_text(row->state), row->tombstone ? "t" : "f",
                        row->expires_ms, row->extensions, row->obeyed_epoch,
                        row->restocked ? "t" : "f", row->payment, row->epoch);
        say_units(row->units, row->unit_count, false, false);
        conformance_say(world.model, " live ");
        say_units(row->units, row->unit_count, true, false);
        separator = "; ";
    }
    ledger_server_add(
        "SELECT right(id, 8)::int, state, tombstone, tidegate.to_ms(expires_at), extensions, "
        "obeyed_epoch, restocked_at IS NOT NULL, 'pay' || coalesce(right(payment_id, 2)::int, 0), "
        "epoch, tidegate.units_text(id, false), 'live', tidegate.units_text(id, true) FROM "
        "tidegate.reservations WHERE sale = 's' ORDER BY id");
    ledger_server_ask();
}

static void say_numbers(const sim_pause *numbers, uint32_t count)
{
    sim_pause sorted[SIM_LIFTED];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > numbers[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = numbers[i];
    }
    conformance_say(world.model, " {");
    for (uint32_t i = 0; i < count; i++) {
        conformance_say(world.model, "%s%u", i > 0 ? "," : "", sorted[i]);
    }
    conformance_say(world.model, "}");
}

static void compare_sale(void)
{
    const struct ledger *ledger = &world.ledger;
    conformance_line(world.model);
    conformance_say(world.model, "%s %" PRIu64 " %" PRIu64 " %s %s %u %" PRId64,
                    phase_text(ledger_phase(ledger)), ledger->epoch, ledger->control_sequence,
                    ledger->armed ? "t" : "f", ledger->run_id, ledger->clean_rounds,
                    ledger->last_clean_ms);
    say_numbers(ledger->pauses, ledger->pause_count);
    say_numbers(ledger->lifted, ledger->lifted_count);
    ledger_server_add(
        "SELECT state, epoch, control_seq, armed, run_id, clean_rounds, "
        "coalesce(tidegate.to_ms(last_clean_at), 0), "
        "ARRAY(SELECT right(x, 8)::int FROM unnest(pause_ids) x ORDER BY 1), "
        "ARRAY(SELECT right(x, 8)::int FROM unnest(lifted_ids) x ORDER BY 1) FROM tidegate.sales");
    ledger_server_ask();
}

static void compare_compensations(void)
{
    const char *separator = "";
    conformance_line(world.model);
    for (uint32_t payment = 0; payment < SIM_PAYMENTS; payment++) {
        if (world.ledger.compensated[payment]) {
            conformance_say(world.model, "%s%u", separator, payment);
            separator = "; ";
        }
    }
    ledger_server_add("SELECT right(payment_id, 2)::int FROM tidegate.outbox WHERE kind = "
                      "'compensate' AND sale = 's' ORDER BY 1");
    ledger_server_ask();
}

static void run_ledger(const struct conformance_sequence *sequence,
                       struct conformance_report *report)
{
    world.what = &report->what;
    world.model = &report->model;
    world.name = sequence->seed % UINT64_C(1000000000000000000);
    world.rounds = 1;
    world.now_ms = INT64_C(1800000000000);
    world.chance.state = sequence->seed;
    ledger_server_begin();
    ledger_server_clock(world.now_ms);
    make_sale();
    if (percent(85)) {
        arm();
        check();
        check();
        tick();
    }
    for (uint32_t i = 0; i < sequence->count; i++) {
        world.chance.state = sequence->operations[i];
        world.now_ms += percent(85) ? below(80) : below(1200);
        ledger_server_clock(world.now_ms);
        operation();
    }
    compare_reservations();
    compare_sale();
    compare_compensations();
    ledger_server_answers(&report->server);
}

static const struct conformance_mutant mutants[] = {
    {"server_lapses_confirmed", "due_work", "r.state = 'pending'", "r.state <> 'expired'"},
    {"server_confirms_late", "confirm_reservation", "tidegate.past_grace(v_row)", "false"},
    {"server_forgets_epoch", "obeyed_orders", "r.obeyed_epoch < p_epoch", "r.obeyed_epoch = 0"}};

const struct conformance_part conformance_ledger = {
    .name = "ledger",
    .operations_least = 6,
    .operations_most = 20, /* each costs PostgreSQL half a millisecond */
    .mutants = mutants,
    .mutant_count = sizeof mutants / sizeof mutants[0],
    .open = ledger_server_open,
    .run = run_ledger};
