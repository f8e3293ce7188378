/* SPDX-License-Identifier: Apache-2.0
 * The shop's buyer tokens: JWT (RFC 7519, RFC 8725). Algorithm and key come from settings, never
 * from the token. */
#ifndef TG_IO_JWT_H
#define TG_IO_JWT_H

#include "lib/pure/clock.h"
#include "lib/pure/identity.h"

enum tg_jwt_algorithm { TG_JWT_HS256, TG_JWT_EDDSA };

struct tg_jwt_key {
    enum tg_jwt_algorithm algorithm;
    uint8_t key[32]; /* HS256 secret, or Ed25519 public key */
};

/* Checks alg, signature, exp and nbf (+-2 s), and takes `sub`. Duplicate members, other types, bad
 * UTF-8, NUL, a missing or non-integer exp are refused. 0, TG_ERR_MALFORMED, TG_ERR_FORGED,
 * TG_ERR_RANGE (expired). */
TG_MUST_CHECK int tg_jwt_buyer(const struct tg_jwt_key *key, const char *text, size_t length,
                               struct tg_wall now, struct tg_holder *out_user);

/* Issues one (HS256) for demos and tests; out_text: 1024 bytes. Returns its length; 0 when the
 * user id is not a valid one. */
size_t tg_jwt_issue(const uint8_t secret[32], const char *user, struct tg_wall now, int64_t life_ms,
                    char *out_text);

#endif
