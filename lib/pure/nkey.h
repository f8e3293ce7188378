/* SPDX-License-Identifier: Apache-2.0
 * NKeys, as NATS spells Ed25519 keys of users: base32 of a prefix, the key and a CRC-16. Only the
 * spelling; signing is Ed25519. Source: the NKeys specification of NATS (nats-io/nkeys). */
#ifndef TG_PURE_NKEY_H
#define TG_PURE_NKEY_H

#include "lib/pure/error.h"

#include <stddef.h>
#include <stdint.h>

enum { TG_NKEY_BYTES = 32, TG_NKEY_SEED_LENGTH = 58, TG_NKEY_PUBLIC_LENGTH = 56 };

/* A user's seed, "SU…". */
void tg_nkey_seed_encode(const uint8_t seed[TG_NKEY_BYTES], char out_text[TG_NKEY_SEED_LENGTH + 1]);
/* 0, or TG_ERR_MALFORMED: not a user's seed, or mistyped. */
TG_MUST_CHECK int tg_nkey_seed_decode(const char *text, size_t length,
                                      uint8_t out_seed[TG_NKEY_BYTES]);
/* A user's public key, "U…". */
void tg_nkey_public_encode(const uint8_t key[TG_NKEY_BYTES],
                           char out_text[TG_NKEY_PUBLIC_LENGTH + 1]);
TG_MUST_CHECK int tg_nkey_public_decode(const char *text, size_t length,
                                        uint8_t out_key[TG_NKEY_BYTES]);

#endif
