/* SPDX-License-Identifier: Apache-2.0
 * ES256 (RFC 7518: ECDSA on P-256 with SHA-256), for passes that gateways without EdDSA check.
 * libcrypto does it; libsodium knows no P-256. A public key is the x of a point whose y is even, so
 * that it fits a key file; of the two signatures that say the same only the one with the lower s
 * is made, and taken. */
#ifndef TG_IO_ES256_H
#define TG_IO_ES256_H

#include "lib/pure/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_ES256_KEY_BYTES = 32, TG_ES256_SIGNATURE_BYTES = 64 };

struct tg_es256; /* a key; a secret one also signs */

/* A new pair. */
TG_MUST_CHECK int tg_es256_make(uint8_t out_secret[TG_ES256_KEY_BYTES],
                                uint8_t out_x[TG_ES256_KEY_BYTES]);

/* From a secret, or from the public x: 0 and a key for tg_es256_free, or TG_ERR_MALFORMED. */
TG_MUST_CHECK int tg_es256_open_secret(const uint8_t secret[TG_ES256_KEY_BYTES],
                                       struct tg_es256 **out_key);
TG_MUST_CHECK int tg_es256_open_public(const uint8_t x[TG_ES256_KEY_BYTES],
                                       struct tg_es256 **out_key);
struct tg_es256 *tg_es256_free(struct tg_es256 *key);

/* Both coordinates, as a JWK names them. */
void tg_es256_point(const struct tg_es256 *key, uint8_t out_x[TG_ES256_KEY_BYTES],
                    uint8_t out_y[TG_ES256_KEY_BYTES]);

/* r and s. 0, or TG_ERR_STORE when libcrypto fails. Each signature is another. About 40 us. */
TG_MUST_CHECK int tg_es256_sign(const struct tg_es256 *key, const void *text, size_t length,
                                uint8_t out_signature[TG_ES256_SIGNATURE_BYTES]);
/* About 100 us. */
bool tg_es256_verify(const struct tg_es256 *key, const void *text, size_t length,
                     const uint8_t signature[TG_ES256_SIGNATURE_BYTES]);

#endif
