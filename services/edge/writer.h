/* SPDX-License-Identifier: Apache-2.0
 * Text put together in a fixed buffer: JSON replies and header lines. What does not fit is noticed,
 * never cut silently. */
#ifndef EDGE_WRITER_H
#define EDGE_WRITER_H

#include "lib/pure/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct edge_writer {
    char *text;
    size_t length, capacity;
    bool full; /* something did not fit */
};

/* `text` borrowed; one byte is kept for the closing NUL. */
void edge_write_begin(struct edge_writer *writer, char *text, size_t capacity);
void edge_write_bytes(struct edge_writer *writer, const char *data, size_t length);
static inline void edge_write(struct edge_writer *writer, const char *text)
{
    edge_write_bytes(writer, text, strlen(text)); /* the length of a literal costs nothing */
}
void edge_write_number(struct edge_writer *writer, uint64_t number);
/* A JSON string with its quotes, escaped. */
void edge_write_string(struct edge_writer *writer, const char *text);
/* A quoted RFC 3339 time, null when out of range. */
void edge_write_time(struct edge_writer *writer, struct tg_wall wall);
/* milli / 1000 as a JSON number with up to three decimals. */
void edge_write_milli(struct edge_writer *writer, uint64_t milli);
/* Text for HTML: & < > " ' escaped. */
void edge_write_html(struct edge_writer *writer, const char *text);
/* Ends with NUL; false when something did not fit. */
bool edge_write_end(struct edge_writer *writer);

#endif
