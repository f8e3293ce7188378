/* SPDX-License-Identifier: Apache-2.0
 * A gate script's answer, of any words, through to what the buyer is told. Unknown stays unknown:
 * nobody hears "held" unless the ledger recorded it, or "sold out, for good" unless the gate said
 * nothing is free and nothing is held. */
#include "tests/fuzz/fuzz.h"

#include "services/reserve/core.h"
#include "services/reserve/store_redis.h"

enum { TEXT_BYTES = 512 };

/* Length and bytes of each word, as a reply has them: a text may hold anything. */
static size_t read_words(struct choice *choice, struct reserve_word *words)
{
    size_t count = 0;
    while (count < RESERVE_WORDS_MAX && choice->at < choice->length) {
        size_t length = choice_byte(choice);
        size_t left = choice->length - choice->at;
        length = length < left ? length : left;
        words[count++] = (struct reserve_word){(const char *)choice->bytes + choice->at, length};
        choice->at += length;
    }
    return count;
}

static bool carries(const struct reserve_answer *answer, size_t index,
                    const struct tg_hold_record *record)
{
    char text[TG_HOLD_RECORD_BYTES];
    size_t length = tg_hold_record_format(record, text);
    return index < answer->count && answer->words[index].length == length &&
           memcmp(answer->words[index].text, text, length) == 0;
}

static void check_hold(const struct reserve_answer *answer, struct reserve_hold_answer *hold)
{
    reserve_answer_hold(answer, hold);
    switch (answer->ending) {
    case RESERVE_ENDED:
        HOLDS(hold->taken != RESERVE_TAKEN_UNKNOWN && hold->taken != RESERVE_TAKEN_NOT_RUN);
        break;
    case RESERVE_UNKNOWN:
        HOLDS(hold->taken == RESERVE_TAKEN_UNKNOWN);
        break;
    case RESERVE_NOT_RUN:
        HOLDS(hold->taken == RESERVE_TAKEN_NOT_RUN);
        break;
    case RESERVE_BROKEN:
        HOLDS(hold->taken == RESERVE_TAKEN_DOUBT);
        break;
    }
    if (hold->taken == RESERVE_TAKEN_HELD) {
        HOLDS(reserve_word_is(answer, 0, "held") && carries(answer, 1, &hold->record));
    }
    if (hold->taken == RESERVE_TAKEN_REPLAY_HELD) {
        HOLDS(reserve_word_is(answer, 1, "held") && carries(answer, 2, &hold->record));
    }
    HOLDS(!hold->final || (hold->taken == RESERVE_TAKEN_SOLD_OUT &&
                           reserve_word_is(answer, 1, "0") && reserve_word_is(answer, 2, "0")));
    size_t length = strlen(hold->reservation);
    HOLDS(hold->taken != RESERVE_TAKEN_LIMIT || length == 0 ||
          tg_reservation_id_valid(hold->reservation, length));
}

static void choose_ledger(struct choice *choice, struct reserve_ledger_answer *out_ledger)
{
    *out_ledger = (struct reserve_ledger_answer){
        .recorded = (enum reserve_recorded)choice_below(choice, 4),
        .reason = (enum tg_reason)choice_below(choice, TG_REASON_COUNT + 1),
        .state = (enum reserve_state)choice_below(choice, 5),
        .expires_ms = 1000};
}

static bool recorded(const struct reserve_ledger_answer *ledger)
{
    return ledger->recorded == RESERVE_RECORDED_NEW ||
           (ledger->recorded == RESERVE_RECORDED_KNOWN &&
            (ledger->state == RESERVE_STATE_PENDING || ledger->state == RESERVE_STATE_CONFIRMED));
}

/* The last action of a flow that ended. */
static void check_outcome(const struct reserve_action *last, bool is_recorded,
                          const struct reserve_hold_answer *hold, enum tg_phase phase)
{
    HOLDS(last->kind == RESERVE_DO_ANSWER);
    HOLDS((last->outcome.reason == TG_REASON_NONE) == is_recorded);
    HOLDS(last->outcome.unit_count <= TG_MAX_UNITS_PER_HOLD);
    HOLDS(!last->outcome.final || hold->final ||
          (hold->taken == RESERVE_TAKEN_NOT_OPEN && phase == TG_PHASE_SOLD_OUT));
}

static void run_flow(const struct reserve_hold_answer *hold, enum tg_phase phase,
                     const struct reserve_ledger_answer *ledger)
{
    static struct reserve_flow flow;
    static struct reserve_action actions[RESERVE_ACTIONS_MAX];
    struct reserve_request request = {.reservation = "res_00000000000000000000000000"};
    struct reserve_event event = {.kind = RESERVE_EVENT_BEGIN};
    memset(&flow, 0, sizeof(flow));
    event.begin.request = &request;
    event.begin.phase = phase;
    HOLDS(reserve_step(&flow, &event, actions) == 1 && actions[0].kind == RESERVE_DO_HOLD);
    event = (struct reserve_event){.kind = RESERVE_EVENT_GATE, .gate = hold};
    size_t count = reserve_step(&flow, &event, actions);
    HOLDS(count >= 1 && count <= RESERVE_ACTIONS_MAX);
    if (hold->taken == RESERVE_TAKEN_DOUBT) {
        HOLDS(actions[0].kind == RESERVE_DO_PAUSE && actions[0].cause == RESERVE_PAUSE_DOUBT);
    }
    if (flow.stage == RESERVE_STAGE_FREE) {
        check_outcome(&actions[count - 1], false, hold, phase);
        return;
    }
    event = (struct reserve_event){
        .kind = flow.stage == RESERVE_STAGE_RECORD ? RESERVE_EVENT_RECORDED : RESERVE_EVENT_READ,
        .ledger = ledger};
    count = reserve_step(&flow, &event, actions);
    HOLDS(count >= 1 && flow.stage == RESERVE_STAGE_FREE);
    check_outcome(&actions[count - 1], recorded(ledger), hold, phase);
}

static void check_look(const struct reserve_answer *answer)
{
    static struct reserve_look look;
    if (!reserve_answer_look(answer, &look)) {
        return;
    }
    HOLDS(answer->ending == RESERVE_ENDED && look.now_ms >= 0);
    HOLDS(look.known || (!look.armed && look.item_count == 0));
    HOLDS(look.item_count <= TG_MAX_ITEMS_PER_SALE && look.pause_count <= COUNT_OF(look.pauses));
    for (uint32_t i = 0; i < look.item_count; i++) {
        HOLDS(look.items[i].stock >= 0 && look.items[i].held >= 0 && look.items[i].settled >= 0);
    }
    for (uint32_t i = 0; i < look.pause_count; i++) {
        HOLDS(strlen(look.pauses[i]) <= TG_BASE32_ID_LENGTH);
    }
}

static void check_obeyed(const struct reserve_answer *answer)
{
    enum reserve_obeyed obeyed = reserve_answer_obeyed(answer);
    HOLDS(obeyed != RESERVE_OBEYED_DONE ||
          (answer->ending == RESERVE_ENDED && reserve_word_is(answer, 0, "done")));
    HOLDS(obeyed != RESERVE_OBEYED_ALREADY ||
          (answer->ending == RESERVE_ENDED && reserve_word_is(answer, 0, "already")));
    HOLDS((answer->ending != RESERVE_UNKNOWN && answer->ending != RESERVE_NOT_RUN) ||
          obeyed == RESERVE_OBEYED_UNKNOWN);
}

/* Errors of Redis, as C texts. */
static void check_texts(struct choice *choice)
{
    char text[TEXT_BYTES];
    bool reconnect = false;
    choice_text(choice, text, sizeof(text));
    enum reserve_ending ending = reserve_redis_error(text, &reconnect);
    HOLDS(ending == RESERVE_NOT_RUN || ending == RESERVE_BROKEN);
    HOLDS(!reconnect || ending == RESERVE_NOT_RUN);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct reserve_word words[RESERVE_WORDS_MAX];
    static struct reserve_hold_answer hold;
    struct choice choice = {bytes, size, 0};
    struct reserve_ledger_answer ledger;
    uint8_t selector = choice_byte(&choice);
    enum tg_phase phase = (enum tg_phase)(choice_byte(&choice) % (TG_PHASE_CLOSED + 1));
    if (selector == UINT8_MAX) {
        check_texts(&choice);
        return 0;
    }
    choose_ledger(&choice, &ledger);
    struct reserve_answer answer = {.ending = selector < 192 ? RESERVE_ENDED
                                                             : (enum reserve_ending)(selector % 4),
                                    .words = words};
    answer.count = read_words(&choice, words);
    check_hold(&answer, &hold);
    run_flow(&hold, phase, &ledger);
    check_obeyed(&answer);
    check_look(&answer);
    return 0;
}
