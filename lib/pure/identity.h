/* SPDX-License-Identifier: Apache-2.0
 * What people and their acts are called: place, entrant, reservation id, jti. All are BLAKE2b over
 * length-prefixed fields with a domain name first, so that no field can slide into its neighbour
 * (case-27). Pure: keys are arguments. */
#ifndef TG_PURE_IDENTITY_H
#define TG_PURE_IDENTITY_H

#include "lib/pure/error.h"
#include "lib/pure/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TG_KEY_BYTES = 32,
    TG_PLACE_BYTES = 16,
    TG_DIGEST_BYTES = 16,
    TG_ENTRANT_LENGTH = 26,
    TG_JTI_LENGTH = 32
};

/* Incremental MAC; `key` NULL = plain digest. Fields are appended as 8-byte little-endian length
 * and bytes. */
struct tg_mac {
    _Alignas(64) uint8_t state[384]; /* crypto_generichash_state of libsodium */
};
void tg_mac_begin(struct tg_mac *mac, const uint8_t key[TG_KEY_BYTES], const char *domain);
void tg_mac_field(struct tg_mac *mac, const void *data, size_t length);
void tg_mac_text(struct tg_mac *mac, const char *text);
void tg_mac_number(struct tg_mac *mac, uint64_t value);
void tg_mac_end(struct tg_mac *mac, uint8_t *out_tag, size_t length); /* 16..64 bytes */

/* Equality in time that depends on the length only: for jti, credentials and MACs (never memcmp or
 * strcmp). */
TG_MUST_CHECK bool tg_equal_constant(const void *left, const void *right, size_t length);

/* Who holds a place: a signed-in buyer, or a visitor by cookie (fifo only). */
enum tg_holder_kind { TG_HOLDER_USER = 1, TG_HOLDER_VISITOR = 2 };
struct tg_holder {
    enum tg_holder_kind kind;
    uint8_t length; /* user: 1..128 bytes; visitor: 16 bytes */
    uint8_t bytes[128];
};

/* place = digest of (sale, generation, holder, index). */
void tg_place(const char *sale, uint64_t generation, const struct tg_holder *holder, uint64_t index,
              uint8_t out_place[TG_PLACE_BYTES]);

/* entrant = MAC over (sale, generation, holder), Crockford base32: public, cannot be chosen. */
void tg_entrant(const uint8_t key[TG_KEY_BYTES], const char *sale, uint64_t generation,
                const struct tg_holder *holder, char out_entrant[TG_ENTRANT_LENGTH + 1]);

/* reservation id = "res_" + MAC over (sale, generation, user, idempotency key). */
void tg_reservation_id(const uint8_t key[TG_KEY_BYTES], const char *sale, uint64_t generation,
                       const uint8_t *user, size_t user_length, const char *idempotency_key,
                       char out_id[TG_RESERVATION_ID_LENGTH + 1]);

/* jti = base64url(window as 8 bytes big-endian || first 16 bytes of MAC(sale, generation, place,
 * user, window)). */
void tg_jti(const uint8_t key[TG_KEY_BYTES], const char *sale, uint64_t generation,
            const uint8_t place[TG_PLACE_BYTES], const uint8_t *user, size_t user_length,
            uint64_t window, char out_jti[TG_JTI_LENGTH + 1]);

#endif
