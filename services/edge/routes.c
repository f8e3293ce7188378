/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/routes.h"

#include "lib/pure/number.h"

#include <string.h>

enum { SEGMENTS_MAX = 4, SEGMENT_BYTES = TG_MAX_SALE_NAME_BYTES + 1 };

struct segments {
    unsigned count;
    char names[SEGMENTS_MAX][SEGMENT_BYTES];
};

static const struct edge_route_row rows[EDGE_ROUTE_COUNT] = {
    [EDGE_ROUTE_NONE] = {"none", EDGE_ROLE_BOTH, false, true},
    [EDGE_ROUTE_PAGE] = {"page", EDGE_ROLE_WAITING, false, false},
    [EDGE_ROUTE_WAIT] = {"wait", EDGE_ROLE_WAITING, false, true},
    [EDGE_ROUTE_FILE] = {"file", EDGE_ROLE_WAITING, false, false},
    [EDGE_ROUTE_POLICY] = {"policy", EDGE_ROLE_WAITING, false, false},
    [EDGE_ROUTE_BOARD] = {"board", EDGE_ROLE_WAITING, false, false},
    [EDGE_ROUTE_CHALLENGE] = {"challenge", EDGE_ROLE_WAITING, false, true},
    [EDGE_ROUTE_TICKET] = {"ticket", EDGE_ROLE_WAITING, false, true},
    [EDGE_ROUTE_STATUS] = {"status", EDGE_ROLE_WAITING, false, true},
    [EDGE_ROUTE_DRAW] = {"draw", EDGE_ROLE_WAITING, false, false},
    [EDGE_ROUTE_ROSTER] = {"roster", EDGE_ROLE_WAITING, false, false},
    [EDGE_ROUTE_JWKS] = {"jwks", EDGE_ROLE_BOTH, false, false},
    [EDGE_ROUTE_REASONS] = {"reasons", EDGE_ROLE_BOTH, false, false},
    [EDGE_ROUTE_RESERVE] = {"reserve", EDGE_ROLE_CHECKOUT, true, true},
    [EDGE_ROUTE_RESERVATION] = {"reservation", EDGE_ROLE_CHECKOUT, false, true},
    [EDGE_ROUTE_CONFIRM] = {"confirm", EDGE_ROLE_CHECKOUT, true, true},
    [EDGE_ROUTE_EXTEND] = {"extend", EDGE_ROLE_CHECKOUT, true, true},
    [EDGE_ROUTE_CANCEL] = {"cancel", EDGE_ROLE_CHECKOUT, true, true},
};

const struct edge_route_row *edge_route_row(enum edge_route route)
{
    return &rows[route];
}

static int hex(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* The byte of an escape, whose % is behind *at; false when it is broken. */
static bool decode_escape(const char **at, char *out_byte)
{
    int high = hex((*at)[0]);
    int low = high >= 0 ? hex((*at)[1]) : -1;
    if (low < 0) {
        return false;
    }
    *out_byte = (char)(high * 16 + low);
    *at += 2;
    return true;
}

/* What may be in a name, and stands for itself; % does not. */
static const bool plain[256] = {[0x21 ... '$'] = true,
                                ['&' ... '.'] = true,
                                ['0' ... '['] = true,
                                [']' ... '~'] = true,
                                [0x80 ... 0xff] = true};

/* The segment at *at, to the next slash or the end, and *at behind it; false where an escape is
 * broken or a byte may not be in a name. */
static bool decode_segment(const char **at, char out_name[SEGMENT_BYTES])
{
    const char *text = *at;
    size_t length = 0;
    while (*text != '\0' && *text != '/') {
        char byte = *text++;
        if (!plain[(unsigned char)byte] && (byte != '%' || !decode_escape(&text, &byte) ||
                                            (byte != '%' && !plain[(unsigned char)byte]))) {
            return false;
        }
        if (length == SEGMENT_BYTES - 1) {
            return false;
        }
        out_name[length++] = byte;
    }
    out_name[length] = '\0';
    *at = text;
    return length > 0 && strcmp(out_name, ".") != 0 && strcmp(out_name, "..") != 0;
}

static bool split(const char *path, struct segments *out)
{
    out->count = 0;
    while (*path == '/') {
        path++;
        if (out->count == SEGMENTS_MAX || !decode_segment(&path, out->names[out->count])) {
            return false;
        }
        out->count++;
    }
    return *path == '\0' && out->count > 0;
}

struct name_row {
    const char *name;
    enum edge_route route;
};

static enum edge_route find(const struct name_row *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i].name, name) == 0) {
            return names[i].route;
        }
    }
    return EDGE_ROUTE_NONE;
}

static void route_part(const char *number, struct edge_target *out)
{
    uint64_t part;
    if (tg_unsigned_parse(number, strlen(number), TG_MAX_ROSTER_ENTRANTS, &part) == 0) {
        out->route = EDGE_ROUTE_ROSTER;
        out->part = (uint32_t)part;
    }
}

static void route_sale(const struct segments *segments, struct edge_target *out)
{
    static const struct name_row names[] = {
        {"wait", EDGE_ROUTE_WAIT},           {"policy", EDGE_ROUTE_POLICY},
        {"board", EDGE_ROUTE_BOARD},         {"ticket", EDGE_ROUTE_TICKET},
        {"status", EDGE_ROUTE_STATUS},       {"reserve", EDGE_ROUTE_RESERVE},
        {"challenge", EDGE_ROUTE_CHALLENGE}, {"draw.json", EDGE_ROUTE_DRAW},
    };
    if (segments->count == 2) {
        out->route = EDGE_ROUTE_PAGE;
    } else if (segments->count == 3) {
        out->route = find(names, sizeof(names) / sizeof(names[0]), segments->names[2]);
    } else if (strcmp(segments->names[2], "roster") == 0) {
        route_part(segments->names[3], out);
    }
    memcpy(out->sale, segments->names[1], sizeof(out->sale));
}

static void route_reservation(const struct segments *segments, struct edge_target *out)
{
    static const struct name_row names[] = {{"confirm", EDGE_ROUTE_CONFIRM},
                                            {"extend", EDGE_ROUTE_EXTEND},
                                            {"cancel", EDGE_ROUTE_CANCEL}};
    const char *id = segments->names[1];
    if (segments->count == 2) {
        out->route = EDGE_ROUTE_RESERVATION;
    } else if (segments->count == 3) {
        out->route = find(names, sizeof(names) / sizeof(names[0]), segments->names[2]);
    }
    if (tg_reservation_id_valid(id, strlen(id))) {
        memcpy(out->reservation, id, sizeof(out->reservation));
    }
}

void edge_route(const char *path, struct edge_target *out_target)
{
    struct segments segments;
    *out_target = (struct edge_target){.route = EDGE_ROUTE_NONE};
    if (!split(path, &segments)) {
        return;
    }
    const char *first = segments.names[0];
    if (segments.count == 1) {
        out_target->route = strcmp(first, "reasons") == 0 ? EDGE_ROUTE_REASONS : EDGE_ROUTE_NONE;
        return;
    }
    if (strcmp(first, "sale") == 0) {
        route_sale(&segments, out_target);
    } else if (strcmp(first, "reservations") == 0) {
        route_reservation(&segments, out_target);
    } else if (strcmp(first, "waiting") == 0 && segments.count == 2) {
        out_target->route = EDGE_ROUTE_FILE;
        memcpy(out_target->file, segments.names[1], sizeof(out_target->file));
    } else if (strcmp(first, ".well-known") == 0 && strcmp(segments.names[1], "jwks.json") == 0 &&
               segments.count == 2) {
        out_target->route = EDGE_ROUTE_JWKS;
    }
}

unsigned edge_query(const char *query, const char *name, const char **out_value, size_t *out_length)
{
    unsigned count = 0;
    size_t name_length = strlen(name);
    while (*query != '\0') {
        size_t length = strcspn(query, "&");
        if (length > name_length && query[name_length] == '=' &&
            memcmp(query, name, name_length) == 0) {
            if (count == 0) {
                *out_value = query + name_length + 1;
                *out_length = length - name_length - 1;
            }
            count++;
        }
        query += length;
        query += *query == '&';
    }
    return count;
}
