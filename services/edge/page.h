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

/* Puts values into a template: {{name}} becomes the value, escaped for HTML; an unknown name
 * becomes nothing. *out_text is given with free(). 0 or -ENOMEM. */
struct edge_page_value {
    const char *name, *value;
};
TG_MUST_CHECK int edge_page_render(const char *template, const struct edge_page_value *values,
                                   size_t count, char **out_text, size_t *out_length);

#endif
