/* SPDX-License-Identifier: Apache-2.0
 * Who sent a request through how many proxies: the right-most hop that no trusted proxy of ours is.
 * Addresses are 16 bytes; IPv4 is mapped (::ffff:a.b.c.d). Pure. */
#ifndef TG_PURE_CLIENT_H
#define TG_PURE_CLIENT_H

#include "lib/pure/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_ADDRESS_BYTES = 16, TG_NETWORKS_MAX = 32 };

struct tg_network {
    uint8_t address[TG_ADDRESS_BYTES];
    uint8_t bits; /* of 128 */
};

struct tg_networks {
    size_t count;
    struct tg_network rows[TG_NETWORKS_MAX];
};

/* "10.0.0.0/8, 2001:db8::/32, 127.0.0.1": comma-separated. 0, or TG_ERR_MALFORMED (also for bits
 * set behind the prefix, and for more than TG_NETWORKS_MAX). */
TG_MUST_CHECK int tg_networks_parse(const char *text, struct tg_networks *out_networks);

/* An address with or without a port: 1.2.3.4, 1.2.3.4:80, 2001:db8::1, [2001:db8::1],
 * [2001:db8::1]:80. 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int tg_address_parse(const char *text, size_t length,
                                   uint8_t out_address[TG_ADDRESS_BYTES]);

/* The hop before those already known to be ours. `forwarded` is one X-Forwarded-For line; lines are
 * given from the last to the first. Starts with *address = the peer. Returns true while *address is
 * a trusted proxy, that is while a further line may say more. An entry that is no address ends the
 * walk with TG_ERR_MALFORMED in *out_error: the client is unknown, and is not taken for the proxy.
 */
TG_MUST_CHECK bool tg_client_walk(const struct tg_networks *trusted, const char *forwarded,
                                  uint8_t address[TG_ADDRESS_BYTES], int *out_error);

/* True when a network of the list holds the address. */
bool tg_networks_hold(const struct tg_networks *networks, const uint8_t address[TG_ADDRESS_BYTES]);

/* Forgets what tells hosts of one household apart: IPv6 is kept to its /64. */
void tg_address_bucket(uint8_t address[TG_ADDRESS_BYTES]);

#endif
