/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/kv_internal.h"
#include "lib/pure/number.h"

#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decodes text[0..length) into out[capacity]. A NUL inside is refused. */
static int decode(const char *text, size_t length, char *out, size_t capacity)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        int c = (unsigned char)text[i];
        if (c == '%') {
            int high = i + 2 < length ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < length ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return TG_ERR_MALFORMED;
            }
            c = high * 16 + low;
            i += 2;
        }
        if (c == '\0' || used + 1 >= capacity) {
            return TG_ERR_MALFORMED;
        }
        out[used++] = (char)c;
    }
    out[used] = '\0';
    return 0;
}

static int parse_credentials(const char *text, size_t length, struct kv_url *url)
{
    const char *colon = memchr(text, ':', length);
    if (colon == NULL) {
        return TG_ERR_MALFORMED;
    }
    size_t user_length = (size_t)(colon - text);
    int error = decode(text, user_length, url->user, sizeof url->user);
    if (error == 0) {
        error = decode(colon + 1, length - user_length - 1, url->password, sizeof url->password);
    }
    return error;
}

/* host:port or [v6]:port; the port may be left out. */
static int parse_address(const char *text, size_t length, struct kv_url *url)
{
    const char *host = text;
    size_t host_length = length;
    const char *after = NULL;
    if (length > 0 && text[0] == '[') {
        const char *end = memchr(text, ']', length);
        if (end == NULL) {
            return TG_ERR_MALFORMED;
        }
        host = text + 1;
        host_length = (size_t)(end - host);
        after = end + 1;
    } else {
        const char *colon = memchr(text, ':', length);
        host_length = colon != NULL ? (size_t)(colon - text) : length;
        after = text + host_length;
    }
    size_t rest = length - (size_t)(after - text);
    url->port = 6379;
    if (rest > 0) {
        int64_t port = 0;
        if (*after != ':' || tg_integer_parse(after + 1, rest - 1, 1, 65535, &port) != 0) {
            return TG_ERR_MALFORMED;
        }
        url->port = (uint16_t)port;
    }
    if (host_length == 0) {
        return TG_ERR_MALFORMED;
    }
    return decode(host, host_length, url->host, sizeof url->host);
}

int kv_url_parse(const char *text, struct kv_url *out_url)
{
    static const char tcp[] = "redis://", local[] = "unix://";
    struct kv_url url = {.port = 0};
    if (strncmp(text, local, sizeof local - 1) == 0) {
        const char *path = text + sizeof local - 1;
        size_t length = strlen(path);
        if (path[0] != '/' || length >= sizeof url.path) {
            return TG_ERR_MALFORMED;
        }
        memcpy(url.path, path, length + 1);
        *out_url = url;
        return 0;
    }
    if (strncmp(text, tcp, sizeof tcp - 1) != 0) {
        return TG_ERR_MALFORMED;
    }
    const char *rest = text + sizeof tcp - 1;
    const char *at = strrchr(rest, '@');
    if (at != NULL) {
        if (parse_credentials(rest, (size_t)(at - rest), &url) != 0) {
            return TG_ERR_MALFORMED;
        }
        rest = at + 1;
    }
    size_t length = strcspn(rest, "/");
    if (rest[length] == '/' && rest[length + 1] != '\0') {
        int64_t database = 0;
        const char *digits = rest + length + 1;
        if (tg_integer_parse(digits, strlen(digits), 0, 1023, &database) != 0) {
            return TG_ERR_MALFORMED;
        }
        url.database = (uint32_t)database;
    }
    if (parse_address(rest, length, &url) != 0) {
        return TG_ERR_MALFORMED;
    }
    *out_url = url;
    return 0;
}
