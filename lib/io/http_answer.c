/* SPDX-License-Identifier: Apache-2.0
 * The head of an answer, and refusals as problem documents. */
#include "lib/io/http_parts.h"
#include "lib/io/http_problem.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "200 OK"},
        {201, "201 Created"},
        {204, "204 No Content"},
        {303, "303 See Other"},
        {304, "304 Not Modified"},
        {400, "400 Bad Request"},
        {401, "401 Unauthorized"},
        {403, "403 Forbidden"},
        {404, "404 Not Found"},
        {405, "405 Method Not Allowed"},
        {409, "409 Conflict"},
        {413, "413 Content Too Large"},
        {414, "414 URI Too Long"},
        {415, "415 Unsupported Media Type"},
        {422, "422 Unprocessable Content"},
        {429, "429 Too Many Requests"},
        {431, "431 Request Header Fields Too Large"},
        {503, "503 Service Unavailable"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == status) {
            return rows[i].text;
        }
    }
    return "500 Internal Server Error";
}

/* IMF-fixdate of RFC 9110 5.6.7, made anew once a second. */
static const char *date_line(struct tg_wall now)
{
    static char line[] = "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    static int64_t second = -1;
    if (now.ms / 1000 != second) {
        static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
        static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        second = now.ms / 1000;
        time_t seconds = (time_t)second;
        struct tm tm;
        gmtime_r(&seconds, &tm);
        char text[64];
        int length = snprintf(text, sizeof(text), "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
                              days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900,
                              tm.tm_hour, tm.tm_min, tm.tm_sec);
        if (length == (int)sizeof(line) - 1) {
            memcpy(line, text, sizeof(line));
        }
    }
    return line;
}

static char *append(char *at, const char *text)
{
    return mempcpy(at, text, strlen(text));
}

size_t tg_http_answer_head(const struct tg_http_answer *answer, struct tg_wall now,
                           enum tg_http_persistence persistence, char *out_text)
{
    static const char *const connection_lines[] = {[TG_HTTP_KEEP] = "",
                                                   [TG_HTTP_KEEP_SAY] =
                                                       "Connection: keep-alive\r\n",
                                                   [TG_HTTP_CLOSE] = "Connection: close\r\n"};
    char *at = append(out_text, "HTTP/1.1 ");
    at = append(at, status_text(answer->status));
    at = append(at, "\r\n");
    at = append(at, date_line(now));
    if (answer->content_type != NULL) {
        at = append(at, "Content-Type: ");
        at = append(at, answer->content_type);
        at = append(at, "\r\n");
    }
    if (answer->status != 204 &&
        answer->status != 304) { /* RFC 9110 8.6: no length where there is no content */
        at = append(at, "Content-Length: ");
        at += tg_unsigned_format(answer->body_length, at);
        at = append(at, "\r\n");
    }
    at = append(at, connection_lines[persistence]);
    if (answer->headers != NULL) {
        at = append(at, answer->headers);
    }
    at = append(at, "\r\n");
    return (size_t)(at - out_text);
}

/* Stands for itself inside a JSON string. */
static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* The escaped form of one byte that is not plain. Returns its length, at most 6. */
static size_t escape_byte(unsigned char byte, bool valid, char out_text[6])
{
    static const char hex[] = "0123456789abcdef";
    if (byte >= 0x80) {
        out_text[0] = valid ? (char)byte : '?';
        return 1;
    }
    if (byte == '"' || byte == '\\') {
        out_text[0] = '\\';
        out_text[1] = (char)byte;
        return 2;
    }
    const char form[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    memcpy(out_text, form, sizeof(form));
    return 6;
}

size_t tg_http_json_escape(const char *text, size_t length, char *out_text, size_t capacity)
{
    size_t used = 0, at = 0;
    while (at < length && at < capacity && is_plain((unsigned char)text[at])) {
        at++;
    }
    memcpy(out_text, text, at);
    used = at;
    if (at == length) {
        return used;
    }
    bool valid = tg_utf8_valid((const uint8_t *)text, length);
    for (; at < length; at++) {
        char escaped[6] = {text[at]};
        unsigned char byte = (unsigned char)text[at];
        size_t escaped_length = is_plain(byte) ? 1 : escape_byte(byte, valid, escaped);
        if (used + escaped_length > capacity) {
            break;
        }
        memcpy(out_text + used, escaped, escaped_length);
        used += escaped_length;
    }
    /* A cut never leaves half a character. */
    while (used > 0 && !tg_utf8_valid((const uint8_t *)out_text, used)) {
        used--;
    }
    return used;
}

size_t tg_http_problem(enum tg_reason reason, const char *detail, const char *members,
                       char *out_text)
{
    const struct tg_reason_row *row = tg_reason_row(reason);
    assert(strlen(members) <= 512);
    const char *sentence = detail != NULL ? detail : row->detail;
    char escaped[513];
    size_t length = tg_http_json_escape(sentence, strlen(sentence), escaped, sizeof(escaped) - 1);
    escaped[length] = '\0';
    int written =
        snprintf(out_text, TG_HTTP_PROBLEM_BYTES,
                 "{\"type\":\"/reasons#%s\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\"%s,"
                 "\"error\":{\"code\":\"%s\"}}",
                 row->code, row->title, row->status, escaped, members, row->code);
    assert(written > 0 && written < TG_HTTP_PROBLEM_BYTES);
    return (size_t)written;
}
