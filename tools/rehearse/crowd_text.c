/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/crowd.h"

#include "lib/io/jwt.h"
#include "lib/io/now.h"
#include "lib/pure/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TOKEN_LIFE_MS = 3600 * 1000, TOKEN_BYTES = 1024, USER_DIGITS = 7 };

static const char user_prefix[] = "rehearse-";

void rehearse_user(const char *tag, uint32_t buyer, char out_user[64])
{
    int length = snprintf(out_user, 64, "%s%s-%0*" PRIu32, user_prefix, tag, USER_DIGITS, buyer);
    assert(length > 0 && length < 64);
}

uint32_t rehearse_user_number(const char *tag, const char *user, size_t length)
{
    char expected[64];
    uint32_t number = 0;
    size_t prefix = strlen(user_prefix) + strlen(tag) + 1;
    if (length != prefix + USER_DIGITS) {
        return UINT32_MAX;
    }
    for (size_t i = prefix; i < length; i++) {
        if (user[i] < '0' || user[i] > '9') {
            return UINT32_MAX;
        }
        number = number * 10 + (uint32_t)(user[i] - '0');
    }
    rehearse_user(tag, number, expected);
    return memcmp(expected, user, length) == 0 ? number : UINT32_MAX;
}

static void buyer_token(const struct rehearse_crowd *crowd, uint32_t buyer,
                        char out_token[TOKEN_BYTES])
{
    char user[64];
    rehearse_user(crowd->tag, buyer, user);
    size_t length =
        tg_jwt_issue(crowd->options->buyer_secret, user, tg_now_wall(), TOKEN_LIFE_MS, out_token);
    assert(length > 0); /* the user id is of our own making */
    (void)length;
}

static int write_get(const struct rehearse_crowd *crowd, const struct rehearse_request *request,
                     char out_text[REHEARSE_REQUEST_BYTES])
{
    const char *host = crowd->options->host;
    char token[TOKEN_BYTES];
    if (request->ask == REHEARSE_ASK_BOARD) {
        return snprintf(out_text, REHEARSE_REQUEST_BYTES,
                        "GET /sale/%s/board HTTP/1.1\r\nHost: %s\r\n\r\n", crowd->sale->name, host);
    }
    buyer_token(crowd, request->buyer, token);
    if (request->ask == REHEARSE_ASK_TICKET) {
        return snprintf(
            out_text, REHEARSE_REQUEST_BYTES,
            "GET /sale/%s/ticket HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n",
            crowd->sale->name, host, token);
    }
    return snprintf(out_text, REHEARSE_REQUEST_BYTES,
                    "GET /sale/%s/status HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer "
                    "%s\r\nX-Ticket: %s\r\n\r\n",
                    crowd->sale->name, host, token,
                    rehearse_tickets_token(&crowd->tickets, crowd->people[request->buyer].ticket));
}

/* One unit: of the only item with an empty body, else of the buyer's item by name. */
static int write_reserve(const struct rehearse_crowd *crowd, const struct rehearse_request *request,
                         char out_text[REHEARSE_REQUEST_BYTES])
{
    const struct rehearse_sale *sale = crowd->sale;
    const struct rehearse_session *session = crowd->people[request->buyer].session;
    char token[TOKEN_BYTES];
    char body[128] = "";
    int body_length = 0;
    buyer_token(crowd, request->buyer, token);
    if (sale->item_count > 1) {
        body_length = snprintf(body, sizeof(body), "{\"items\":[{\"sku\":\"%s\",\"quantity\":1}]}",
                               sale->items[request->buyer % sale->item_count].sku);
    }
    return snprintf(out_text, REHEARSE_REQUEST_BYTES,
                    "POST /sale/%s/reserve HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
                    "X-Admission-Token: %s\r\nIdempotency-Key: k-%s-%" PRIu32
                    "-%u\r\n%sContent-Length: %d\r\n\r\n%s",
                    sale->name, crowd->options->host, token, session != NULL ? session->pass : "",
                    crowd->tag, request->buyer, request->attempt,
                    body_length > 0 ? "Content-Type: application/json\r\n" : "", body_length, body);
}

/* The shop's word: this buyer has paid this reservation. */
static int write_confirm(const struct rehearse_crowd *crowd, const struct rehearse_request *request,
                         char out_text[REHEARSE_REQUEST_BYTES])
{
    const struct rehearse_item *item =
        &crowd->sale->items[request->buyer % crowd->sale->item_count];
    const struct rehearse_session *session = crowd->people[request->buyer].session;
    char body[256];
    int body_length = snprintf(
        body, sizeof(body),
        "{\"paymentId\":\"pay-%s-%" PRIu32 "-%u\",\"amount\":%" PRIu64 ",\"currency\":\"%s\"}",
        crowd->tag, request->buyer, request->attempt, item->price_minor, item->currency);
    return snprintf(
        out_text, REHEARSE_REQUEST_BYTES,
        "POST /reservations/%s/confirm HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
        "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
        session != NULL ? session->reservation : "", crowd->options->host,
        crowd->options->service_credential, body_length, body);
}

size_t rehearse_crowd_write(void *context, const struct rehearse_request *request,
                            char out_text[REHEARSE_REQUEST_BYTES])
{
    const struct rehearse_crowd *crowd = context;
    int length;
    if (request->ask == REHEARSE_ASK_RESERVE) {
        length = write_reserve(crowd, request, out_text);
    } else if (request->ask == REHEARSE_ASK_CONFIRM) {
        length = write_confirm(crowd, request, out_text);
    } else {
        length = write_get(crowd, request, out_text);
    }
    /* Every part is bounded: token 1 KiB, pass and ticket as our own limits say. */
    assert(length > 0 && length < REHEARSE_REQUEST_BYTES);
    return (size_t)length;
}
