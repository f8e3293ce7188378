/* SPDX-License-Identifier: Apache-2.0
 * The pass: a JWT (RFC 7519, alg EdDSA or ES256, typ tg-pass+jwt) in one canonical spelling; single
 * use by place, not by token. Claims in this order: iss "tidegate", aud (sale), sub (user), iat,
 * exp, jti, place, gen, event_id, role "ADMITTED". */
#ifndef TG_PURE_PASS_H
#define TG_PURE_PASS_H

#include "lib/pure/clock.h"
#include "lib/pure/identity.h"
#include "lib/pure/limit.h"

struct tg_pass {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation;
    uint8_t user[TG_MAX_USER_BYTES];
    size_t user_length;
    uint8_t place[TG_PLACE_BYTES];
    uint64_t window; /* floor(now / 60 s) when issued */
    char jti[TG_JTI_LENGTH + 1];
};

/* exp = (window + 2) x 60 s. */
struct tg_wall tg_pass_expires(uint64_t window);

struct tg_sign_key {
    char id[9];         /* kid: 8 hex characters */
    uint8_t secret[64]; /* libsodium Ed25519 secret key */
    uint8_t public_key[32];
};
struct tg_verify_key {
    char id[9];
    uint8_t public_key[32];
};

/* ES256 is for gateways that know no EdDSA; lib/io/es256 signs and verifies it. */
enum tg_pass_algorithm { TG_PASS_EDDSA, TG_PASS_ES256 };
enum { TG_PASS_SIGNATURE_BYTES = 64 };

/* The part that is signed, header and claims. out_text: TG_MAX_PASS_BYTES + 1. Returns its length.
 */
size_t tg_pass_write(enum tg_pass_algorithm algorithm, const char *kid, const struct tg_pass *pass,
                     char *out_text);
/* Puts a signature behind text[0..length) of tg_pass_write. Returns the whole length. */
size_t tg_pass_attach(char *text, size_t length, const uint8_t signature[TG_PASS_SIGNATURE_BYTES]);

/* Signs. out_text: TG_MAX_PASS_BYTES + 1. Returns the length. Deterministic: same pass, same key,
 * same text. About 25 us. */
size_t tg_pass_sign(const struct tg_sign_key *key, const struct tg_pass *pass, char *out_text);

/* What a pass says of itself; nothing of it is verified. */
struct tg_pass_read {
    struct tg_pass pass;
    enum tg_pass_algorithm algorithm;
    char kid[9];
    size_t signed_length; /* of the text, from its start */
    uint8_t signature[TG_PASS_SIGNATURE_BYTES];
};
/* Strict: re-encodes to itself. 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int tg_pass_read(const char *text, size_t length, struct tg_pass_read *out_read);

/* Reads and verifies EdDSA: kid from the list, algorithm fixed, re-encodes to itself, exp = (window
 * + 2) x 60 s. Does not judge expiry or jti (the gate does, after replay). 0, TG_ERR_MALFORMED or
 * TG_ERR_FORGED. About 65 us. */
TG_MUST_CHECK int tg_pass_verify(const struct tg_verify_key *keys, size_t key_count,
                                 const char *text, size_t length, struct tg_pass *out_pass);

#endif
