/* SPDX-License-Identifier: Apache-2.0
 * One request body: a length, or chunks in their plainest form. Chunk extensions and trailers are
 * refused: nobody who calls us needs them, and every further spelling is one on which two hops may
 * differ. */
#include "lib/io/http_parts.h"

#include <string.h>

enum chunk_step { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, END_CR, END_LF };
enum { SIZE_DIGITS_MAX = 6 };

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* Copies what belongs to the length or the chunk. */
static size_t take_data(struct tg_http_body *body, const char *data, size_t length, char *out_body)
{
    size_t take = length < body->remaining ? length : (size_t)body->remaining;
    memcpy(out_body + body->stored, data, take);
    body->stored += (uint32_t)take;
    body->remaining -= take;
    return take;
}

static enum tg_reason take_size(struct tg_http_body *body, char byte)
{
    if (byte == '\r' && body->digits > 0) {
        body->step = SIZE_LF;
        return body->stored + body->remaining > TG_MAX_HTTP_BODY_BYTES ? TG_REASON_TOO_LARGE
                                                                       : TG_REASON_NONE;
    }
    int digit = hex_digit(byte);
    if (digit < 0 || body->digits == SIZE_DIGITS_MAX) {
        return digit < 0 ? TG_REASON_MALFORMED : TG_REASON_TOO_LARGE;
    }
    body->remaining = body->remaining * 16 + (uint64_t)digit;
    body->digits++;
    return TG_REASON_NONE;
}

/* One byte outside a chunk's data. */
static enum tg_reason take_framing_byte(struct tg_http_body *body, char byte)
{
    static const char expected[] = {
        [SIZE_LF] = '\n', [DATA_CR] = '\r', [DATA_LF] = '\n', [END_CR] = '\r', [END_LF] = '\n'};
    if (body->step == SIZE) {
        return take_size(body, byte);
    }
    if (byte != expected[body->step]) {
        return TG_REASON_MALFORMED;
    }
    if (body->step == SIZE_LF) {
        body->step = body->remaining > 0 ? DATA : END_CR;
    } else if (body->step == DATA_LF) {
        body->step = SIZE;
        body->digits = 0;
    } else if (body->step == END_LF) {
        body->end = true;
    } else {
        body->step++;
    }
    return TG_REASON_NONE;
}

static enum tg_reason feed_chunked(struct tg_http_body *body, const char *data, size_t length,
                                   char *out_body, size_t *out_taken)
{
    size_t taken = 0;
    enum tg_reason reason = TG_REASON_NONE;
    while (taken < length && !body->end && reason == TG_REASON_NONE) {
        if (body->step != DATA) {
            reason = take_framing_byte(body, data[taken]);
            taken++;
            continue;
        }
        taken += take_data(body, data + taken, length - taken, out_body);
        if (body->remaining == 0) {
            body->step = DATA_CR;
        }
    }
    *out_taken = taken;
    return reason;
}

enum tg_reason tg_http_body_feed(struct tg_http_body *body, const char *data, size_t length,
                                 char *out_body, size_t *out_taken)
{
    if (body->framing == TG_HTTP_CHUNKED) {
        return feed_chunked(body, data, length, out_body, out_taken);
    }
    *out_taken = body->framing == TG_HTTP_LENGTH ? take_data(body, data, length, out_body) : 0;
    body->end = body->remaining == 0;
    return TG_REASON_NONE;
}
