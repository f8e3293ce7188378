/* SPDX-License-Identifier: Apache-2.0
 * The ticket: sealed proof of a place, held by the client. XChaCha20-Poly1305 (libsodium),
 * versioned binary, base64url. Opaque: lane and flags must not show, so every ticket of one (sale,
 * holder length) has the same length. */
#ifndef TG_PURE_TICKET_H
#define TG_PURE_TICKET_H

#include "lib/pure/clock.h"
#include "lib/pure/identity.h"
#include "lib/pure/limit.h"

#include <stdbool.h>

enum tg_lane { TG_LANE_LIVE = 0, TG_LANE_SLOW = 1, TG_LANE_DECOY = 2 };

struct tg_ticket {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation;
    struct tg_holder holder;
    struct tg_wall arrived;
    uint64_t index;
    bool early;
    bool proved; /* its challenge before the pass was met */
    enum tg_lane lane;
};

enum { TG_TICKET_NONCE_BYTES = 24, TG_TICKET_PREFIX_BYTES = 16, TG_SUBKEYS = 64 };

/* XChaCha20 derives a key of its own from the key and a nonce's first 16 bytes (HChaCha20). Who
 * seals keeps that prefix as long as it lives, so the few in use are remembered. Secret.
 * Zero-initialised. */
struct tg_subkeys {
    struct tg_subkey {
        uint8_t id; /* of the key; 0 = empty */
        uint8_t prefix[TG_TICKET_PREFIX_BYTES];
        uint8_t key[TG_KEY_BYTES];
    } slots[TG_SUBKEYS];
};

/* previous/current/next of one secret; id 0 = absent. Encrypting uses current. */
struct tg_key_ring {
    struct {
        uint8_t id;
        uint8_t key[TG_KEY_BYTES];
    } keys[3];                  /* [0] current, [1] previous, [2] next */
    struct tg_subkeys *subkeys; /* borrowed; NULL: derived anew each time */
};

/* Seals with ring->keys[0] and a nonce that was never used with it: 24 random bytes, or a random
 * prefix of 16 and a number that only grows. out_text: TG_MAX_TICKET_BYTES + 1. Returns its length.
 * About 1.2 us with the prefix remembered. */
size_t tg_ticket_seal(const struct tg_key_ring *ring, const struct tg_ticket *ticket,
                      const uint8_t nonce[TG_TICKET_NONCE_BYTES], char *out_text);

/* 0, TG_ERR_MALFORMED (not canonical, bad field) or TG_ERR_FORGED (unknown key, seal does not
 * verify). */
TG_MUST_CHECK int tg_ticket_open(const struct tg_key_ring *ring, const char *text, size_t length,
                                 struct tg_ticket *out_ticket);

#endif
