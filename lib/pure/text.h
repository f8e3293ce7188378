/* SPDX-License-Identifier: Apache-2.0
 * Encodings with one canonical spelling each, and validators of names and ids. Whatever does not
 * re-encode to itself is refused. */
#ifndef TG_PURE_TEXT_H
#define TG_PURE_TEXT_H

#include "lib/pure/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* base64url without padding, RFC 4648 section 5. Encoded length of n bytes, without NUL. */
#define TG_BASE64URL_LENGTH(n) (((n)*4 + 2) / 3)

/* out_text: TG_BASE64URL_LENGTH(length) + 1 bytes; NUL added. Returns the text's length. */
size_t tg_base64url_encode(const uint8_t *data, size_t length, char *out_text);

/* Refuses padding, other characters, non-zero trailing bits and results over capacity. 0 or
 * TG_ERR_MALFORMED, after which out_data holds nothing of use. */
TG_MUST_CHECK int tg_base64url_decode(const char *text, size_t text_length, uint8_t *out_data,
                                      size_t capacity, size_t *out_length);

/* Crockford base32, upper case, 26 characters for 16 bytes (128 bits, two leading zero bits). */
enum { TG_BASE32_ID_LENGTH = 26 };
void tg_base32_id_encode(const uint8_t id[16], char out_text[TG_BASE32_ID_LENGTH + 1]);
/* Only the canonical upper-case spelling. 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int tg_base32_id_decode(const char *text, size_t length, uint8_t out_id[16]);

/* Lower-case hex. out_text: 2 x length + 1 bytes. */
void tg_hex_encode(const uint8_t *data, size_t length, char *out_text);
TG_MUST_CHECK int tg_hex_decode(const char *text, size_t text_length, uint8_t *out_data,
                                size_t length);

/* Valid UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool tg_utf8_valid(const uint8_t *data, size_t length);

/* A buyer's id: 1..128 bytes, valid UTF-8, no control characters (below 0x20, 0x7f, C1). */
bool tg_user_valid(const uint8_t *data, size_t length);

/* [A-Za-z0-9_-]{1,64}: sale names and skus. */
bool tg_sale_name_valid(const char *text, size_t length);

/* [a-z0-9-]{1,32}, as lib/io/app names instances. */
bool tg_instance_valid(const char *text);

/* 1..128 bytes 0x21..0x7e without the double quote. */
bool tg_idempotency_key_valid(const char *text, size_t length);

/* "res_" + canonical 26 characters. */
enum { TG_RESERVATION_ID_LENGTH = 30 };
bool tg_reservation_id_valid(const char *text, size_t length);

#endif
