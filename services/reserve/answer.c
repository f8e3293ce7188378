/* SPDX-License-Identifier: Apache-2.0 */
#include "services/reserve/answer.h"

#include "lib/pure/number.h"
#include "lib/pure/reason.h"

#include <string.h>

static const int64_t NUMBER_MAX = (INT64_C(1) << 53) - 1; /* what Lua counts exactly */

bool reserve_word_is(const struct reserve_answer *answer, size_t index, const char *text)
{
    return index < answer->count && answer->words[index].length == strlen(text) &&
           memcmp(answer->words[index].text, text, answer->words[index].length) == 0;
}

bool reserve_word_number(const struct reserve_answer *answer, size_t index, int64_t *out_value)
{
    return index < answer->count &&
           tg_integer_parse(answer->words[index].text, answer->words[index].length, 0, NUMBER_MAX,
                            out_value) == 0;
}

bool reserve_word_copy(const struct reserve_answer *answer, size_t index, char *out_text,
                       size_t capacity)
{
    if (index >= answer->count || answer->words[index].length >= capacity) {
        return false;
    }
    const struct reserve_word *word = &answer->words[index];
    if (word->length > 0) {
        memcpy(out_text, word->text, word->length);
    }
    out_text[word->length] = '\0';
    return true;
}

static bool take_record(const struct reserve_answer *answer, size_t index,
                        struct reserve_hold_answer *hold)
{
    return index < answer->count &&
           tg_hold_record_parse(answer->words[index].text, answer->words[index].length,
                                &hold->record) == 0;
}

static enum reserve_taken replay(const struct reserve_answer *answer,
                                 struct reserve_hold_answer *hold)
{
    if (reserve_word_is(answer, 1, "held") && take_record(answer, 2, hold)) {
        return RESERVE_TAKEN_REPLAY_HELD;
    }
    if (reserve_word_is(answer, 1, "settled")) {
        return RESERVE_TAKEN_REPLAY_SETTLED;
    }
    return reserve_word_is(answer, 1, "released") ? RESERVE_TAKEN_REPLAY_RELEASED
                                                  : RESERVE_TAKEN_DOUBT;
}

static enum reserve_taken closed(const struct reserve_answer *answer)
{
    if (reserve_word_is(answer, 1, "not_open")) {
        return RESERVE_TAKEN_NOT_OPEN;
    }
    return reserve_word_is(answer, 1, "unproved") ? RESERVE_TAKEN_UNPROVED : RESERVE_TAKEN_PAUSED;
}

static enum reserve_taken limit(const struct reserve_answer *answer,
                                struct reserve_hold_answer *hold)
{
    if (!reserve_word_copy(answer, 1, hold->reservation, sizeof hold->reservation)) {
        return RESERVE_TAKEN_DOUBT;
    }
    size_t length = strlen(hold->reservation);
    return length == 0 || tg_reservation_id_valid(hold->reservation, length) ? RESERVE_TAKEN_LIMIT
                                                                             : RESERVE_TAKEN_DOUBT;
}

static enum reserve_taken sold_out(const struct reserve_answer *answer,
                                   struct reserve_hold_answer *hold)
{
    int64_t stock = 0, held = 0;
    if (!reserve_word_number(answer, 1, &stock) || !reserve_word_number(answer, 2, &held)) {
        return RESERVE_TAKEN_DOUBT;
    }
    hold->final = stock == 0 && held == 0;
    return RESERVE_TAKEN_SOLD_OUT;
}

static enum reserve_taken read_words(const struct reserve_answer *answer,
                                     struct reserve_hold_answer *hold)
{
    /* Words that are reasons of the catalogue as well are spelled there. */
    static const struct {
        enum tg_reason reason;
        enum reserve_taken taken;
    } reasons[] = {
        {TG_REASON_UNKNOWN_GATE, RESERVE_TAKEN_UNKNOWN_GATE},
        {TG_REASON_PASS_EXPIRED, RESERVE_TAKEN_PASS_EXPIRED},
        {TG_REASON_PASS_USED, RESERVE_TAKEN_PASS_USED},
    };
    if (reserve_word_is(answer, 0, "held")) {
        return take_record(answer, 1, hold) ? RESERVE_TAKEN_HELD : RESERVE_TAKEN_DOUBT;
    }
    if (reserve_word_is(answer, 0, tg_reason_code(TG_REASON_SOLD_OUT))) {
        return sold_out(answer, hold);
    }
    if (reserve_word_is(answer, 0, "replay")) {
        return replay(answer, hold);
    }
    if (reserve_word_is(answer, 0, "paused")) {
        return closed(answer);
    }
    if (reserve_word_is(answer, 0, "limit")) {
        return limit(answer, hold);
    }
    if (reserve_word_is(answer, 0, "mismatch")) {
        return RESERVE_TAKEN_MISMATCH;
    }
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reserve_word_is(answer, 0, tg_reason_code(reasons[i].reason))) {
            return reasons[i].taken;
        }
    }
    return RESERVE_TAKEN_DOUBT;
}

void reserve_answer_hold(const struct reserve_answer *answer, struct reserve_hold_answer *out_hold)
{
    out_hold->final = false;
    out_hold->reservation[0] = '\0';
    switch (answer->ending) {
    case RESERVE_ENDED:
        out_hold->taken = read_words(answer, out_hold);
        return;
    case RESERVE_UNKNOWN:
        out_hold->taken = RESERVE_TAKEN_UNKNOWN;
        return;
    case RESERVE_NOT_RUN:
        out_hold->taken = RESERVE_TAKEN_NOT_RUN;
        return;
    case RESERVE_BROKEN:
        out_hold->taken = RESERVE_TAKEN_DOUBT;
        return;
    }
}

enum reserve_obeyed reserve_answer_obeyed(const struct reserve_answer *answer)
{
    if (answer->ending == RESERVE_UNKNOWN || answer->ending == RESERVE_NOT_RUN) {
        return RESERVE_OBEYED_UNKNOWN;
    }
    if (answer->ending == RESERVE_BROKEN) {
        return RESERVE_OBEYED_DOUBT;
    }
    if (reserve_word_is(answer, 0, "done")) {
        return RESERVE_OBEYED_DONE;
    }
    if (reserve_word_is(answer, 0, "already")) {
        return RESERVE_OBEYED_ALREADY;
    }
    if (reserve_word_is(answer, 0, "unknown_reservation")) {
        return RESERVE_OBEYED_UNKNOWN_RESERVATION;
    }
    return reserve_answer_unknown_gate(answer) ? RESERVE_OBEYED_UNKNOWN_GATE : RESERVE_OBEYED_DOUBT;
}

bool reserve_answer_unknown_gate(const struct reserve_answer *answer)
{
    return answer->ending == RESERVE_ENDED &&
           reserve_word_is(answer, 0, tg_reason_code(TG_REASON_UNKNOWN_GATE));
}

enum { LOOK_ITEMS_AT = 17, LOOK_ITEM_WORDS = 6 };

static bool look_items(const struct reserve_answer *answer, struct reserve_look *look)
{
    int64_t item_count = 0;
    if (!reserve_word_number(answer, LOOK_ITEMS_AT - 1, &item_count) || item_count < 1 ||
        item_count > TG_MAX_ITEMS_PER_SALE ||
        answer->count < (size_t)(LOOK_ITEMS_AT + item_count * LOOK_ITEM_WORDS)) {
        return false;
    }
    look->item_count = (uint32_t)item_count;
    for (uint32_t i = 0; i < look->item_count; i++) {
        struct reserve_look_item *item = &look->items[i];
        size_t at = LOOK_ITEMS_AT + (size_t)i * LOOK_ITEM_WORDS;
        if (!reserve_word_number(answer, at, &item->initial) ||
            !reserve_word_number(answer, at + 1, &item->stock) ||
            !reserve_word_number(answer, at + 2, &item->held) ||
            !reserve_word_number(answer, at + 3, &item->settled) ||
            !reserve_word_number(answer, at + 4, &item->free_bits)) {
            return false;
        }
    }
    return true;
}

static void look_pauses(const struct reserve_answer *answer, struct reserve_look *look)
{
    look->pause_count = 0;
    for (size_t at = LOOK_ITEMS_AT + (size_t)look->item_count * LOOK_ITEM_WORDS; at < answer->count;
         at++) {
        if (look->pause_count < sizeof look->pauses / sizeof look->pauses[0] &&
            reserve_word_copy(answer, at, look->pauses[look->pause_count],
                              sizeof look->pauses[0])) {
            look->pause_count++;
        }
    }
}

bool reserve_answer_look(const struct reserve_answer *answer, struct reserve_look *out_look)
{
    struct reserve_look look = {.known = false};
    if (answer->ending != RESERVE_ENDED) {
        return false;
    }
    if (reserve_answer_unknown_gate(answer) && reserve_word_number(answer, 1, &look.now_ms)) {
        *out_look = look;
        return true;
    }
    if (!reserve_word_is(answer, 0, "look") || !reserve_word_number(answer, 1, &look.now_ms) ||
        !reserve_word_number(answer, 2, &look.epoch) ||
        !reserve_word_copy(answer, 3, look.run_id, sizeof look.run_id) ||
        !reserve_word_copy(answer, 4, look.replication_id, sizeof look.replication_id) ||
        !reserve_word_number(answer, 6, &look.attested_until_ms) ||
        !reserve_word_number(answer, 7, &look.limit) ||
        !reserve_word_number(answer, 8, &look.sequence) ||
        !reserve_word_number(answer, 10, &look.unacked) ||
        !reserve_word_copy(answer, 13, look.loader, sizeof look.loader) ||
        !reserve_word_number(answer, 14, &look.load_at_ms) ||
        !reserve_word_number(answer, 15, &look.load_page) || !look_items(answer, &look)) {
        return false;
    }
    look.known = true;
    look.armed = reserve_word_is(answer, 5, "1");
    look_pauses(answer, &look);
    *out_look = look;
    return true;
}
