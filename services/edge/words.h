/* SPDX-License-Identifier: Apache-2.0
 * The page's words, for the page without script: the same messages.<language>.json that the script
 * reads, of the embedded page or the operator's folder. Read once, at the start. */
#ifndef EDGE_WORDS_H
#define EDGE_WORDS_H

#include "lib/pure/error.h"

#include <stddef.h>

struct edge_words; /* of one language */

/* Reads every catalogue that edge_page_load found; English must be among them. 0, or an error after
 * one sentence on stderr. */
TG_MUST_CHECK int edge_words_load(void);
void edge_words_free(void);

/* The language of ?lang= if there is one of it, else the first of Accept-Language that there is,
 * else English. Tags are compared by their first part; q is not read, since browsers list their
 * languages best first. NULL: not given. Never NULL. */
const struct edge_words *edge_words_choose(const char *asked, size_t asked_length,
                                           const char *accepted);

const char *edge_words_language(const struct edge_words *words);
/* A message as it stands, of a plural its "other"; "" when there is none. */
const char *edge_words_say(const struct edge_words *words, const char *key);

#endif
