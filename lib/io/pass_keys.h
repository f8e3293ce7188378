/* SPDX-License-Identifier: Apache-2.0
 * The keys of passes, both algorithms: who verifies takes whatever key is there, who signs has one.
 * Files: pass.* (EdDSA), pass-es256.* (ES256; may be absent). */
#ifndef TG_IO_PASS_KEYS_H
#define TG_IO_PASS_KEYS_H

#include "lib/io/es256.h"
#include "lib/pure/pass.h"

enum { TG_PASS_KEYS_MAX = 3 }; /* current, previous, next */

struct tg_pass_keys {
    struct tg_verify_key eddsa[TG_PASS_KEYS_MAX];
    size_t eddsa_count;
    char es256_ids[TG_PASS_KEYS_MAX][9];
    struct tg_es256 *es256[TG_PASS_KEYS_MAX];
    size_t es256_count;
};

/* Public parts of a folder of keys, instead of those that were read before (`keys` is zeroed at
 * first). 0, or a negative error after a sentence on stderr: then they stay. */
TG_MUST_CHECK int tg_pass_keys_read(const char *folder, struct tg_pass_keys *keys);
void tg_pass_keys_free(struct tg_pass_keys *keys);

/* As tg_pass_verify: the algorithm is the key's, whatever the pass says. */
TG_MUST_CHECK int tg_pass_keys_verify(const struct tg_pass_keys *keys, const char *text,
                                      size_t length, struct tg_pass *out_pass);

/* The secret that signs ES256, and its id, instead of what was read before (*key is NULL at first).
 * 0, or a negative error after a sentence: then it stays. */
TG_MUST_CHECK int tg_pass_keys_es256(const char *folder, char id[9], struct tg_es256 **key);

#endif
