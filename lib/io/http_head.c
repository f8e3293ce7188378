/* SPDX-License-Identifier: Apache-2.0
 * One request head. llhttp (strict) judges the syntax; what it lets pass although it could be read
 * in two ways is refused here before it: bare CR or LF, obs-fold, an empty header name, HTTP/0.9,
 * odd digits, two lengths, unknown codings. */
#include "lib/io/http_parts.h"
#include "lib/pure/number.h"

#include <endian.h>
#include <llhttp.h>
#include <string.h>
#include <strings.h>

static bool is_control(unsigned char byte)
{
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

/* The request line without its CRLF. */
static enum tg_reason check_request_line(const char *line, size_t length)
{
    if (length < sizeof("x / HTTP/1.1") - 1) {
        return TG_REASON_MALFORMED;
    }
    const char *version = line + length - 9;
    if (memcmp(version, " HTTP/1.", 8) != 0 || (version[8] != '0' && version[8] != '1')) {
        return TG_REASON_MALFORMED;
    }
    /* llhttp takes several spaces after the method for one. */
    const char *space = memchr(line, ' ', length);
    if (memchr(space + 1, ' ', (size_t)(line + length - space - 1)) != version ||
        version == space + 1) {
        return TG_REASON_MALFORMED;
    }
    return TG_REASON_NONE;
}

/* A line has ended; text[scan->line..end) is it without CRLF. */
static enum tg_reason end_line(struct tg_http_scan *scan, const char *text, uint32_t end)
{
    uint32_t length = end - scan->line;
    if (length == 0) {
        if (scan->lines > 0) {
            scan->end = true;
            return TG_REASON_NONE;
        }
        /* RFC 9112 2.2: one empty line before the request line is forgiven. */
        if (scan->start != 0) {
            return TG_REASON_MALFORMED;
        }
        scan->start = end + 2;
        return TG_REASON_NONE;
    }
    char first = text[scan->line];
    if (first == ' ' || first == '\t' || first == ':') {
        return TG_REASON_MALFORMED;
    }
    scan->lines++;
    return scan->lines == 1 ? check_request_line(text + scan->line, length) : TG_REASON_NONE;
}

enum { STRIDE = 16 };

/* How many of the next sixteen bytes come before the first control character or tab. */
static uint32_t plain_before(const char *text)
{
    typedef uint8_t sixteen __attribute__((vector_size(STRIDE)));
    sixteen bytes;
    uint64_t odd[2]; /* 0xff for each that is not plain */
    memcpy(&bytes, text, sizeof(bytes));
    bytes = (sixteen)((bytes < 0x20) | (bytes == 0x7f));
    memcpy(odd, &bytes, sizeof(odd));
    if (odd[0] != 0) {
        return (uint32_t)__builtin_ctzll(le64toh(odd[0])) / 8;
    }
    return odd[1] != 0 ? 8 + (uint32_t)__builtin_ctzll(le64toh(odd[1])) / 8 : STRIDE;
}

/* Where the plain characters that begin at `at` end: the next control character, or `length`. */
static uint32_t skip_plain(const char *text, uint32_t at, uint32_t length)
{
    while (length - at >= STRIDE) {
        const uint32_t plain = plain_before(text + at);
        at += plain;
        if (plain < STRIDE) {
            if (text[at] != '\t') {
                return at;
            }
            at++;
        }
    }
    while (at < length && !is_control((unsigned char)text[at])) {
        at++;
    }
    return at;
}

enum tg_reason tg_http_scan(struct tg_http_scan *scan, const char *text, size_t length)
{
    while (scan->seen < length && !scan->end) {
        bool after_cr = scan->seen > scan->line && text[scan->seen - 1] == '\r';
        if (!after_cr) {
            scan->seen = skip_plain(text, scan->seen, (uint32_t)length);
        }
        if (scan->seen == length) {
            break;
        }
        char byte = text[scan->seen];
        if (byte != (after_cr ? '\n' : '\r')) {
            return TG_REASON_MALFORMED;
        }
        if (after_cr) {
            enum tg_reason reason = end_line(scan, text, scan->seen - 1);
            if (reason != TG_REASON_NONE) {
                return reason;
            }
            scan->line = scan->seen + 1;
        }
        scan->seen++;
    }
    return TG_REASON_NONE;
}

/* What llhttp's callbacks gather: spans of the one buffer they are called for. */
struct gather {
    char *text;
    struct tg_http_head *head;
    const char *url;
    size_t url_length;
    uint16_t value_lengths[TG_MAX_HTTP_HEADERS];
    bool in_value;
    enum tg_reason reason;
};

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
    struct gather *gather = parser->data;
    if (gather->url == NULL) {
        gather->url = at;
    }
    gather->url_length += length;
    return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t length)
{
    struct gather *gather = parser->data;
    struct tg_http_head *head = gather->head;
    if (gather->in_value || head->header_count == 0) {
        if (head->header_count == TG_MAX_HTTP_HEADERS) {
            gather->reason = TG_REASON_HEAD_TOO_LARGE;
            return -1;
        }
        head->headers[head->header_count].name = (uint16_t)(at - gather->text);
        head->headers[head->header_count].name_length = 0;
        head->headers[head->header_count].value = 0;
        gather->value_lengths[head->header_count] = 0;
        head->header_count++;
        gather->in_value = false;
    }
    head->headers[head->header_count - 1].name_length += (uint16_t)length;
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
    struct gather *gather = parser->data;
    struct tg_http_head *head = gather->head;
    if (head->header_count == 0) {
        return -1;
    }
    struct tg_http_header *header = &head->headers[head->header_count - 1];
    if (header->value == 0) {
        header->value = (uint16_t)(at - gather->text);
    }
    gather->value_lengths[head->header_count - 1] += (uint16_t)length;
    gather->in_value = true;
    return 0;
}

static int on_head_end(llhttp_t *parser)
{
    return HPE_PAUSED;
}

static const llhttp_settings_t *parser_settings(void)
{
    static llhttp_settings_t settings;
    if (settings.on_url == NULL) {
        llhttp_settings_init(&settings);
        settings.on_header_field = on_field;
        settings.on_header_value = on_value;
        settings.on_headers_complete = on_head_end;
        settings.on_url = on_url;
    }
    return &settings;
}

/* RFC 9110 5.6.2: the characters of a header name. */
static const bool token_characters[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['!'] = true,  ['#'] = true,
    ['$'] = true,         ['%'] = true,         ['&'] = true,         ['\''] = true, ['*'] = true,
    ['+'] = true,         ['-'] = true,         ['.'] = true,         ['^'] = true,  ['_'] = true,
    ['`'] = true,         ['|'] = true,         ['~'] = true};

/* Lower-cases the name and ends name and value in NUL; the colon and the CR are overwritten. */
static enum tg_reason finish_header(char *text, struct tg_http_header *header,
                                    uint16_t value_length)
{
    char *name = text + header->name;
    for (uint16_t i = 0; i < header->name_length; i++) {
        if (!token_characters[(unsigned char)name[i]]) {
            return TG_REASON_MALFORMED;
        }
        if (name[i] >= 'A' && name[i] <= 'Z') {
            name[i] = (char)(name[i] + ('a' - 'A'));
        }
    }
    if (header->name_length == 0 || name[header->name_length] != ':') {
        return TG_REASON_MALFORMED;
    }
    name[header->name_length] = '\0';
    if (value_length == 0) { /* the NUL of the name serves */
        header->value = (uint16_t)(header->name + header->name_length);
        return TG_REASON_NONE;
    }
    while (value_length > 0 && (text[header->value + value_length - 1] == ' ' ||
                                text[header->value + value_length - 1] == '\t')) {
        value_length--;
    }
    text[header->value + value_length] = '\0';
    return TG_REASON_NONE;
}

static enum tg_http_method method_of(uint8_t method)
{
    if (method == HTTP_GET) {
        return TG_HTTP_GET;
    }
    if (method == HTTP_HEAD) {
        return TG_HTTP_HEAD;
    }
    if (method == HTTP_POST) {
        return TG_HTTP_POST;
    }
    return method == HTTP_OPTIONS ? TG_HTTP_OPTIONS : TG_HTTP_OTHER;
}

/* Reduces the target to path and query, in place. Origin form, absolute form, or * with OPTIONS. */
static enum tg_reason take_target(char *text, const struct gather *gather,
                                  struct tg_http_head *head)
{
    if (gather->url_length > TG_MAX_HTTP_URI_BYTES) {
        return TG_REASON_URI_TOO_LONG;
    }
    if (gather->url == NULL || gather->url_length == 0) {
        return TG_REASON_MALFORMED;
    }
    char *url = text + (gather->url - text);
    url[gather->url_length] = '\0'; /* was the space before the version */
    if (strchr(url, '#') != NULL) {
        return TG_REASON_MALFORMED;
    }
    if (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) {
        char *authority = strstr(url, "//") + 2;
        size_t length = strcspn(authority, "/?");
        if (length == 0) {
            return TG_REASON_MALFORMED;
        }
        url = authority + length;
        if (*url != '/') { /* no path means the root; the byte before belongs to the authority,
                              which is done with */
            url--;
            *url = '/';
        }
    } else if (url[0] != '/' && !(strcmp(url, "*") == 0 && head->method == TG_HTTP_OPTIONS)) {
        return TG_REASON_MALFORMED;
    }
    head->path = (uint16_t)(url - text);
    char *question = strchr(url, '?');
    if (question != NULL) {
        *question = '\0';
        head->query = (uint16_t)(question + 1 - text);
    }
    return TG_REASON_NONE;
}

/* True when a comma-separated list has this token, in any case. */
static bool list_has(const char *list, const char *token)
{
    size_t length = strlen(token);
    while (*list != '\0') {
        list += strspn(list, " \t,");
        size_t span = strcspn(list, ",");
        size_t trimmed = span;
        while (trimmed > 0 && (list[trimmed - 1] == ' ' || list[trimmed - 1] == '\t')) {
            trimmed--;
        }
        if (trimmed == length && strncasecmp(list, token, length) == 0) {
            return true;
        }
        list += span;
    }
    return false;
}

static enum tg_reason take_framing(const char *text, struct tg_http_head *head)
{
    unsigned lengths, codings;
    const char *length = tg_http_head_find(head, text, "content-length", &lengths);
    const char *coding = tg_http_head_find(head, text, "transfer-encoding", &codings);
    if (lengths + codings > 1) {
        return TG_REASON_MALFORMED;
    }
    if (coding != NULL) {
        if (head->http_1_0 || strcasecmp(coding, "chunked") != 0) {
            return TG_REASON_MALFORMED;
        }
        head->framing = TG_HTTP_CHUNKED;
    }
    if (length != NULL) {
        int error = tg_unsigned_parse(length, strlen(length), INT64_MAX, &head->content_length);
        if (error != 0) {
            return TG_REASON_MALFORMED;
        }
        if (head->content_length > TG_MAX_HTTP_BODY_BYTES) {
            return TG_REASON_TOO_LARGE;
        }
        head->framing = head->content_length > 0 ? TG_HTTP_LENGTH : TG_HTTP_NO_BODY;
    }
    return TG_REASON_NONE;
}

static enum tg_reason take_connection(const char *text, struct tg_http_head *head)
{
    unsigned hosts, expectations;
    tg_http_head_find(head, text, "host", &hosts);
    if (hosts > 1 || (hosts == 0 && !head->http_1_0)) {
        return TG_REASON_MALFORMED;
    }
    const char *expect = tg_http_head_find(head, text, "expect", &expectations);
    if (expect != NULL) {
        if (expectations > 1 || strcasecmp(expect, "100-continue") != 0) {
            return TG_REASON_MALFORMED;
        }
        head->expects = !head->http_1_0;
    }
    head->close = head->http_1_0;
    for (uint16_t i = 0; i < head->header_count; i++) {
        if (strcmp(text + head->headers[i].name, "connection") != 0) {
            continue;
        }
        if (list_has(text + head->headers[i].value, "close")) {
            head->close = true;
            break;
        }
        if (list_has(text + head->headers[i].value, "keep-alive")) {
            head->close = false;
        }
    }
    return TG_REASON_NONE;
}

/* Runs llhttp over the head. */
static enum tg_reason judge(char *text, size_t length, size_t start, struct gather *gather)
{
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, parser_settings());
    parser.data = gather;
    llhttp_errno_t error = llhttp_execute(&parser, text + start, length - start);
    if (gather->reason != TG_REASON_NONE) {
        return gather->reason;
    }
    /* Announced length and refused length are told apart below, from the same headers. */
    if (error != HPE_PAUSED || parser.http_major != 1) {
        return TG_REASON_MALFORMED;
    }
    gather->head->http_1_0 = parser.http_minor == 0;
    gather->head->method = method_of(parser.method);
    if (parser.method == HTTP_CONNECT) {
        return TG_REASON_MALFORMED;
    }
    return TG_REASON_NONE;
}

enum tg_reason tg_http_head_parse(char *text, size_t length, size_t start,
                                  struct tg_http_head *out_head)
{
    struct gather gather = {.text = text, .head = out_head};
    out_head->header_count = 0;
    out_head->query = 0;
    out_head->expects = false;
    out_head->framing = TG_HTTP_NO_BODY;
    out_head->content_length = 0;
    enum tg_reason reason = judge(text, length, start, &gather);
    if (gather.url_length > TG_MAX_HTTP_URI_BYTES) {
        return TG_REASON_URI_TOO_LONG;
    }
    for (uint16_t i = 0; i < out_head->header_count && reason == TG_REASON_NONE; i++) {
        reason = finish_header(text, &out_head->headers[i], gather.value_lengths[i]);
    }
    if (reason == TG_REASON_NONE) {
        reason = take_target(text, &gather, out_head);
    }
    if (reason == TG_REASON_NONE) {
        reason = take_connection(text, out_head);
    }
    if (reason == TG_REASON_NONE) {
        reason = take_framing(text, out_head);
    }
    return reason;
}

const char *tg_http_head_find(const struct tg_http_head *head, const char *text, const char *name,
                              unsigned *out_count)
{
    const char *value = NULL;
    unsigned count = 0;
    size_t length = strlen(name);
    for (uint16_t i = 0; i < head->header_count; i++) {
        const struct tg_http_header *header = &head->headers[i];
        if (header->name_length != length || memcmp(text + header->name, name, length) != 0) {
            continue;
        }
        if (value == NULL) {
            value = text + header->value;
        }
        count++;
    }
    if (out_count != NULL) {
        *out_count = count;
    }
    return value;
}
