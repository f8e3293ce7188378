/* SPDX-License-Identifier: Apache-2.0
 * The waiting page's files: embedded at build time, or of a folder that goes before them. Read
 * once, at the start. */
#ifndef EDGE_PAGE_H
#define EDGE_PAGE_H

#include "lib/pure/error.h"

#include <stddef.h>

/* Files of the folder ("" = none) that go before the embedded ones of the same name. 0, or an error
 * after one sentence on stderr. */
TG_MUST_CHECK int edge_page_load(const char *folder);
void edge_page_free(void);

/* The bytes of a file, NULL when there is none of this name. */
const char *edge_page_find(const char *name, size_t *out_length);

/* The names of all files, the operator's first: at 0, 1, ...; NULL behind the last. */
const char *edge_page_name(size_t at);

/* Puts values into a template, escaped for HTML: {{name}} becomes that value, {{=key}} the message
 * of that key, {{current.de}} whether the words are German; what is not known becomes nothing.
 * *out_text is given with free(). 0 or -ENOMEM. */
struct edge_page_value {
    const char *name, *value;
};
struct edge_words;
struct edge_page_values {
    const struct edge_words *words;
    const struct edge_page_value *values;
    size_t count;
};
TG_MUST_CHECK int edge_page_render(const char *template, const struct edge_page_values *values,
                                   char **out_text, size_t *out_length);

#endif
