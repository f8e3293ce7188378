/* SPDX-License-Identifier: Apache-2.0
 * Secrets as files in one folder, one file each, made by `tidegatectl keys new`. Each file is one line "ID HEX\n": ID is 8 hex
 * characters derived from the key. Files, current required, previous and next optional where rotated:
 *   ticket.{current,previous,next}  32-byte secret     pass.{current,previous,next}   Ed25519 seed; .pub beside each
 *   pass-mac  reservation  entrant  32-byte secrets    control-operator, control-invariant   Ed25519 seed; .pub beside each
 *   buyer     32-byte HS256 secret of the demo shop    service   the shop's credential: "ID TEXT"; service.hash its BLAKE2b */
#ifndef TG_IO_KEYS_H
#define TG_IO_KEYS_H

#include "lib/pure/pass.h"
#include "lib/pure/ticket.h"

/* Each returns 0 or a negative error and prints one sentence naming the file and the fault to stderr. `folder` borrowed. */
TG_MUST_CHECK int tg_keys_secret(const char *folder, const char *name, uint8_t out_key[TG_KEY_BYTES]);
TG_MUST_CHECK int tg_keys_ring(const char *folder, const char *name, struct tg_key_ring *out_ring);
TG_MUST_CHECK int tg_keys_sign(const char *folder, const char *name, struct tg_sign_key *out_key);
/* current, previous, next public parts that exist; at most 3. */
TG_MUST_CHECK int tg_keys_verify(const char *folder, const char *name, struct tg_verify_key out_keys[3], size_t *out_count);
TG_MUST_CHECK int tg_keys_public(const char *folder, const char *name, struct tg_verify_key *out_key);
TG_MUST_CHECK int tg_keys_text(const char *folder, const char *name, char *out_text, size_t capacity); /* service */

/* Makes every key of the list above; refuses to overwrite. For tidegatectl and tests. */
TG_MUST_CHECK int tg_keys_new(const char *folder);

#endif
