/* SPDX-License-Identifier: Apache-2.0
 * What keys.c (reads), keys_make.c (makes) and pass_keys.c share; nobody else includes this. */
#ifndef TG_IO_KEYS_INNER_H
#define TG_IO_KEYS_INNER_H

#include "lib/io/keys.h"

#include <limits.h>
#include <stdbool.h>

enum { KEYS_ID_LENGTH = 8, KEYS_LINE_BYTES = 256 };

/* Prints one sentence, returns `error`. */
int keys_complain(const char *path, const char *fault, int error);
TG_MUST_CHECK int keys_path(const char *folder, const char *name, const char *suffix,
                            char out_path[PATH_MAX]);
/* The 8 hex characters of a key's ID: a digest with its own domain, so that an ID tells nothing
 * about a secret. */
void keys_id(const uint8_t key[TG_KEY_BYTES], char out_id[KEYS_ID_LENGTH + 1]);
/* The first byte of its ID: what names a key in a ring. */
uint8_t keys_ring_id(const uint8_t key[TG_KEY_BYTES]);
/* "" where the file NAME + `ending` is there, else ".current": which of both spellings the present
 * key of this name has. */
const char *keys_current(const char *folder, const char *name, const char *ending);

#endif
