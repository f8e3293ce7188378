/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/client.h"

#include "lib/pure/number.h"

#include <arpa/inet.h>
#include <string.h>

enum { TEXT_BYTES = 64, MAPPED_BYTES = 12, MAPPED_BITS = 96 };

static const uint8_t mapped[MAPPED_BYTES] = {[10] = 0xff, [11] = 0xff};

/* Without port and brackets. */
static int parse_host(const char *text, size_t length, uint8_t out_address[TG_ADDRESS_BYTES])
{
    char host[TEXT_BYTES];
    if (length == 0 || length >= sizeof(host)) {
        return TG_ERR_MALFORMED;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    memcpy(out_address, mapped, sizeof(mapped));
    if (inet_pton(AF_INET, host, out_address + MAPPED_BYTES) == 1) {
        return 0;
    }
    return inet_pton(AF_INET6, host, out_address) == 1 ? 0 : TG_ERR_MALFORMED;
}

static bool is_port(const char *text, size_t length)
{
    uint64_t port;
    return tg_unsigned_parse(text, length, UINT16_MAX, &port) == 0;
}

int tg_address_parse(const char *text, size_t length, uint8_t out_address[TG_ADDRESS_BYTES])
{
    if (length > 0 && text[0] == '[') {
        const char *end = memchr(text, ']', length);
        const size_t inside = end != NULL ? (size_t)(end - text) - 1 : 0;
        const size_t after = end != NULL ? length - inside - 2 : 0;
        if (end == NULL || (after > 0 && (end[1] != ':' || !is_port(end + 2, after - 1)))) {
            return TG_ERR_MALFORMED;
        }
        return memchr(text + 1, ':', inside) != NULL ? parse_host(text + 1, inside, out_address)
                                                     : TG_ERR_MALFORMED;
    }
    const char *colon = memchr(text, ':', length);
    if (colon != NULL && memchr(colon + 1, ':', length - (size_t)(colon + 1 - text)) == NULL) {
        const size_t host = (size_t)(colon - text);
        return is_port(colon + 1, length - host - 1) ? parse_host(text, host, out_address)
                                                     : TG_ERR_MALFORMED;
    }
    return parse_host(text, length, out_address);
}

/* The first `bits` bits of both are the same. */
static bool same_prefix(const uint8_t *left, const uint8_t *right, unsigned bits)
{
    const unsigned whole = bits / 8, rest = bits % 8;
    return memcmp(left, right, whole) == 0 &&
           (rest == 0 || (left[whole] ^ right[whole]) >> (8 - rest) == 0);
}

static int parse_network(const char *text, size_t length, struct tg_network *out_network)
{
    const char *slash = memchr(text, '/', length);
    const size_t host = slash != NULL ? (size_t)(slash - text) : length;
    if (memchr(text, '[', host) != NULL || parse_host(text, host, out_network->address) != 0) {
        return TG_ERR_MALFORMED;
    }
    const bool four = memchr(text, ':', host) == NULL;
    uint64_t bits = four ? 32 : 128;
    if (slash != NULL && tg_unsigned_parse(slash + 1, length - host - 1, bits, &bits) != 0) {
        return TG_ERR_MALFORMED;
    }
    out_network->bits = (uint8_t)(bits + (four ? MAPPED_BITS : 0));
    for (unsigned bit = out_network->bits; bit < 128; bit++) {
        if (out_network->address[bit / 8] >> (7 - bit % 8) & 1) {
            return TG_ERR_MALFORMED;
        }
    }
    return 0;
}

int tg_networks_parse(const char *text, struct tg_networks *out_networks)
{
    out_networks->count = 0;
    while (*text != '\0') {
        text += strspn(text, " ");
        size_t length = strcspn(text, ",");
        size_t used = length;
        while (used > 0 && text[used - 1] == ' ') {
            used--;
        }
        if (out_networks->count == TG_NETWORKS_MAX ||
            parse_network(text, used, &out_networks->rows[out_networks->count]) != 0) {
            return TG_ERR_MALFORMED;
        }
        out_networks->count++;
        text += length;
        text += *text == ',';
    }
    return 0;
}

bool tg_networks_hold(const struct tg_networks *networks, const uint8_t address[TG_ADDRESS_BYTES])
{
    for (size_t i = 0; i < networks->count; i++) {
        if (same_prefix(networks->rows[i].address, address, networks->rows[i].bits)) {
            return true;
        }
    }
    return false;
}

bool tg_client_walk(const struct tg_networks *trusted, const char *forwarded,
                    uint8_t address[TG_ADDRESS_BYTES], int *out_error)
{
    size_t end = strlen(forwarded);
    *out_error = 0;
    while (tg_networks_hold(trusted, address)) {
        size_t start = end;
        while (start > 0 && forwarded[start - 1] != ',') {
            start--;
        }
        size_t first = start + strspn(forwarded + start, " \t"), last = end;
        while (last > first && (forwarded[last - 1] == ' ' || forwarded[last - 1] == '\t')) {
            last--;
        }
        if (first >= last || tg_address_parse(forwarded + first, last - first, address) != 0) {
            *out_error = TG_ERR_MALFORMED;
            return false;
        }
        if (start == 0) {
            return tg_networks_hold(trusted, address);
        }
        end = start - 1;
    }
    return false;
}

void tg_address_bucket(uint8_t address[TG_ADDRESS_BYTES])
{
    enum { NETWORK_BYTES = 8 };
    if (memcmp(address, mapped, sizeof(mapped)) != 0) {
        memset(address + NETWORK_BYTES, 0, TG_ADDRESS_BYTES - NETWORK_BYTES);
    }
}
