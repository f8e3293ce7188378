/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/answers.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "lib/pure/text.h"

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static uint64_t number_of(const json_t *object, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(object, name));
    return number > 0 ? (uint64_t)number : 0;
}

static enum rehearse_said said_of(const char *state)
{
    static const struct {
        const char *state;
        enum rehearse_said said;
    } rows[] = {
        {"waiting", REHEARSE_SAID_WAITING},     {"admitted", REHEARSE_SAID_ADMITTED},
        {"scheduled", REHEARSE_SAID_SCHEDULED}, {"paused", REHEARSE_SAID_PAUSED},
        {"restart", REHEARSE_SAID_RESTART},     {"closed", REHEARSE_SAID_CLOSED},
    };
    if (state == NULL) {
        return REHEARSE_SAID_NOTHING;
    }
    if (strcmp(state, tg_reason_code(TG_REASON_SOLD_OUT)) == 0) {
        return REHEARSE_SAID_SOLD_OUT;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(state, rows[i].state) == 0) {
            return rows[i].said;
        }
    }
    return REHEARSE_SAID_NOTHING;
}

/* 200 of a ticket: a place, or the state that says why there is none. */
static bool read_ticket(const json_t *root, struct rehearse_answer *answer,
                        struct rehearse_details *details)
{
    details->token = text_of(root, "token");
    const char *entrant = text_of(root, "entrant");
    details->entrant = entrant != NULL ? entrant : ""; /* null where nothing is drawn */
    answer->said = said_of(text_of(root, "state"));
    answer->index = number_of(root, "index");
    answer->early = json_is_true(json_object_get(root, "early"));
    bool refused = answer->said == REHEARSE_SAID_SOLD_OUT || answer->said == REHEARSE_SAID_CLOSED;
    bool placed = details->token != NULL && json_is_integer(json_object_get(root, "index"));
    if (placed) {
        answer->said = REHEARSE_SAID_NOTHING;
    }
    return placed || refused;
}

static bool read_status(const json_t *root, struct rehearse_answer *answer,
                        struct rehearse_details *details)
{
    answer->said = said_of(text_of(root, "state"));
    answer->wait_ms = (uint32_t)(number_of(root, "pollSeconds") % 3600) * 1000;
    details->pass = text_of(root, "admissionToken");
    return answer->said != REHEARSE_SAID_NOTHING &&
           (answer->said != REHEARSE_SAID_ADMITTED || details->pass != NULL);
}

static bool read_hold(const json_t *root, struct rehearse_details *details)
{
    const json_t *first = json_array_get(json_object_get(root, "units"), 0);
    const json_t *unit = json_is_object(first) ? json_object_get(first, "unit") : first;
    details->reservation = text_of(root, "reservationId");
    details->sku = text_of(first, "sku");
    details->unit = json_is_integer(unit) ? json_integer_value(unit) : -1;
    return details->reservation != NULL &&
           tg_reservation_id_valid(details->reservation, strlen(details->reservation));
}

static bool read_done(enum rehearse_ask ask, const json_t *root, struct rehearse_answer *answer,
                      struct rehearse_details *details)
{
    switch (ask) {
    case REHEARSE_ASK_TICKET:
        return read_ticket(root, answer, details);
    case REHEARSE_ASK_STATUS:
        return read_status(root, answer, details);
    case REHEARSE_ASK_RESERVE:
        return read_hold(root, details);
    case REHEARSE_ASK_CONFIRM:
        return text_of(root, "orderId") != NULL;
    case REHEARSE_ASK_BOARD:
    case REHEARSE_ASK_COUNT:
        break;
    }
    return false;
}

static void read_refusal(const json_t *root, struct rehearse_answer *answer)
{
    const char *code = text_of(json_object_get(root, "error"), "code");
    answer->heard = REHEARSE_HEARD_REFUSED;
    answer->reason = code != NULL ? tg_reason_from_code(code) : TG_REASON_COUNT;
    answer->final = json_is_true(json_object_get(root, "final"));
}

void rehearse_read_answer(const struct rehearse_reply *reply, struct rehearse_answer *out_answer,
                          struct rehearse_details *out_details)
{
    *out_answer = (struct rehearse_answer){.ask = (enum rehearse_ask)reply->request.ask,
                                           .heard = REHEARSE_HEARD_NOTHING,
                                           .wait_ms = reply->retry_after_s * 1000};
    *out_details = (struct rehearse_details){.unit = -1};
    if (reply->status == 0) {
        return;
    }
    out_details->root = json_loadb(reply->body, reply->body_length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(out_details->root)) {
        return;
    }
    if (reply->status < 200 || reply->status >= 300) {
        read_refusal(out_details->root, out_answer);
    } else if (read_done(out_answer->ask, out_details->root, out_answer, out_details)) {
        out_answer->heard = REHEARSE_HEARD_DONE;
    }
}

void rehearse_details_free(struct rehearse_details *details)
{
    json_decref(details->root);
    details->root = NULL;
}

static enum rehearse_phase phase_of(const char *state)
{
    static const char *const names[] = {"scheduled", "open", "paused", "closed"};
    static const enum rehearse_phase phases[] = {REHEARSE_PHASE_SCHEDULED, REHEARSE_PHASE_OPEN,
                                                 REHEARSE_PHASE_PAUSED, REHEARSE_PHASE_CLOSED};
    if (state != NULL && strcmp(state, tg_reason_code(TG_REASON_SOLD_OUT)) == 0) {
        return REHEARSE_PHASE_SOLD_OUT;
    }
    for (size_t i = 0; state != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(state, names[i]) == 0) {
            return phases[i];
        }
    }
    return REHEARSE_PHASE_UNKNOWN;
}

static void read_view(const json_t *root, struct tg_board_view *out_view)
{
    const char *policy = text_of(root, "policy");
    const char *seed = text_of(root, "seed");
    double pace = json_number_value(json_object_get(root, "pacePerSecond"));
    *out_view = (struct tg_board_view){
        .random = policy != NULL && strcmp(policy, "fifo") != 0,
        .lottery = policy != NULL && strcmp(policy, "lottery") == 0,
        .watermark = number_of(root, "watermark"),
        .present_at_open = number_of(root, "presentAtOpen"),
        .index_at_open = number_of(root, "indexAtOpen"),
        .pace_milli = pace > 0 && pace < 1e12 ? (uint64_t)llround(pace * 1000) : 0};
    out_view->revealed = seed != NULL && tg_hex_decode(seed, strlen(seed), out_view->seed,
                                                       sizeof(out_view->seed)) == 0;
}

bool rehearse_read_board(const struct rehearse_reply *reply, struct rehearse_board *out_board,
                         struct tg_wall *out_made)
{
    json_t *root = reply->status == 200
                       ? json_loadb(reply->body, reply->body_length, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    if (!json_is_object(root)) {
        json_decref(root);
        return false;
    }
    const char *made = text_of(root, "now");
    out_board->phase = phase_of(text_of(root, "state"));
    out_board->remaining = number_of(root, "remaining");
    out_board->held = number_of(root, "held");
    out_board->poll_s = (uint32_t)(number_of(root, "pollSeconds") % 3600);
    read_view(root, &out_board->view);
    if (made == NULL || tg_wall_parse(made, out_made) != 0) {
        *out_made = (struct tg_wall){0};
    }
    json_decref(root);
    return true;
}
