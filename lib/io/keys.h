/* SPDX-License-Identifier: Apache-2.0
 * Secrets as files in one folder, one file each, made by `tidegatectl keys new`. Each file is one
 * line "ID HEX\n": ID is 8 hex characters derived from the key. Files, current required, previous
 * and next optional where rotated: ticket.{current,previous,next}  32-byte secret
 * pass.{current,previous,next}   Ed25519 seed; .pub beside each; pass-es256.{current,previous,next}
 * a secret of P-256, the x of its point in .pub    pass-mac  reservation  entrant 32-byte secrets
 * control-operator, control-invariant   Ed25519 seed; .pub beside each buyer 32-byte HS256 secret
 * of the demo shop    service   the shop's credential: "ID TEXT"; service.hash its BLAKE2b
 *
 * A file whose ID does not belong to its key is refused: a half-copied or hand-edited file is told
 * at start, not at the first customer. Files that group or others may read are taken with a
 * warning. */
#ifndef TG_IO_KEYS_H
#define TG_IO_KEYS_H

#include "lib/pure/nkey.h"
#include "lib/pure/pass.h"
#include "lib/pure/ticket.h"

#include <stdbool.h>

/* Each returns 0 or a negative error and prints one sentence naming the file and the fault to
 * stderr. `folder` borrowed. */
/* `name` is a file's name: "pass-mac", "reservation", "entrant", "buyer", "service.hash". */
TG_MUST_CHECK int tg_keys_secret(const char *folder, const char *name,
                                 uint8_t out_key[TG_KEY_BYTES]);
/* "ticket": its current, previous and next. The ring's ids are the first byte of each ID. */
TG_MUST_CHECK int tg_keys_ring(const char *folder, const char *name, struct tg_key_ring *out_ring);
/* "control-operator", or "pass": a rotated name means its current key. */
TG_MUST_CHECK int tg_keys_sign(const char *folder, const char *name, struct tg_sign_key *out_key);
/* "pass": current, previous, next public parts that exist; at most 3. Needs the .pub files only. */
TG_MUST_CHECK int tg_keys_verify(const char *folder, const char *name,
                                 struct tg_verify_key out_keys[3], size_t *out_count);
/* "nats-edge": how an identity shows itself to NATS. The key has no id. */
TG_MUST_CHECK int tg_keys_nkey(const char *folder, const char *name, struct tg_sign_key *out_key);
/* Its current, previous and next public parts that exist. */
TG_MUST_CHECK int tg_keys_nkey_publics(const char *folder, const char *name,
                                       char out_texts[3][TG_NKEY_PUBLIC_LENGTH + 1],
                                       size_t *out_count);
/* "control-operator" or "pass" (current): the .pub file only. */
TG_MUST_CHECK int tg_keys_public(const char *folder, const char *name,
                                 struct tg_verify_key *out_key);
TG_MUST_CHECK int tg_keys_text(const char *folder, const char *name, char *out_text,
                               size_t capacity); /* service */

/* What service.hash holds for a credential; compare with sodium_memcmp. */
void tg_keys_service_hash(const char *text, size_t length, uint8_t out_hash[TG_KEY_BYTES]);

/* Makes every key of the list above (mode 0600, .pub and .hash 0644; the folder 0700 when it is not
 * there); refuses to overwrite: with one of the files there, nothing is written. For tidegatectl
 * and tests. */
TG_MUST_CHECK int tg_keys_new(const char *folder);

/* The steps of a rotation, of "ticket", "pass", "control-operator", "control-invariant" or a
 * "nats-IDENTITY": PREPARE makes NAME.next, PROMOTE makes it the present key and the present one
 * NAME.previous, RETIRE removes that. Between the steps everybody must have read the folder anew.
 * With `dry_run` nothing is changed and the same faults are told. Each step may be cut off anywhere
 * and given again. 0, or a negative error after one sentence on stderr. */
enum tg_keys_step { TG_KEYS_PREPARE, TG_KEYS_PROMOTE, TG_KEYS_RETIRE };
TG_MUST_CHECK int tg_keys_rotate(const char *folder, const char *name, enum tg_keys_step step,
                                 bool dry_run);
bool tg_keys_rotates(const char *name);

/* The secret of a sale's draw: "draw-SALE", read with tg_keys_secret. Refuses to overwrite: a
 * commitment made from it may be published. */
TG_MUST_CHECK int tg_keys_draw_new(const char *folder, const char *sale,
                                   uint8_t out_secret[TG_KEY_BYTES]);

#endif
