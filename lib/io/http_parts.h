/* SPDX-License-Identifier: Apache-2.0
 * What the files of the HTTP server share: reading one head, reading one body, writing one answer's
 * head. Nothing here touches a socket, so that every rule about framing can be tested byte by byte.
 * Not for use outside lib/io/http*.c and tests. */
#ifndef TG_IO_HTTP_PARTS_H
#define TG_IO_HTTP_PARTS_H

#include "lib/io/http.h"
#include "lib/pure/clock.h"
#include "lib/pure/limit.h"
#include "lib/pure/reason.h"

enum tg_http_framing { TG_HTTP_NO_BODY, TG_HTTP_LENGTH, TG_HTTP_CHUNKED };

/* Looks for the end of a head in text that grows. Zero-initialised before the first byte. */
struct tg_http_scan {
    uint32_t seen;  /* bytes looked at */
    uint32_t line;  /* where the present line begins */
    uint32_t lines; /* finished lines */
    uint32_t start; /* where the request line begins: an empty line before it is skipped */
    bool end;       /* seen is the length of the head */
};

/* Looks at text[scan->seen..length). MALFORMED for a bare CR or LF, a control character, obs-fold,
 * an empty header name, a request line that does not end in HTTP/1.0 or HTTP/1.1; NONE otherwise,
 * and scan->end tells whether the head is whole. */
enum tg_reason tg_http_scan(struct tg_http_scan *scan, const char *text, size_t length);

struct tg_http_header {
    uint16_t name, value; /* offsets into the text, both NUL-terminated there */
    uint16_t name_length;
};

struct tg_http_head {
    enum tg_http_method method;
    bool http_1_0;
    bool close;   /* the connection ends after the answer */
    bool expects; /* Expect: 100-continue */
    enum tg_http_framing framing;
    uint64_t content_length;
    uint16_t path, query; /* offsets; query 0 = none */
    uint16_t header_count;
    struct tg_http_header headers[TG_MAX_HTTP_HEADERS];
};

/* Reads a whole head, in place: names become lower case, values and path end in NUL.
 * NONE, MALFORMED, URI_TOO_LONG, HEAD_TOO_LARGE or TOO_LARGE (announced body over the limit). */
enum tg_reason tg_http_head_parse(char *text, size_t length, size_t start,
                                  struct tg_http_head *out_head);

/* Value of a header by its lower-case name, NULL when absent. */
const char *tg_http_head_find(const struct tg_http_head *head, const char *text, const char *name,
                              unsigned *out_count);

/* One body. Zero-initialised, then framing and remaining set from the head. */
struct tg_http_body {
    enum tg_http_framing framing;
    uint64_t remaining; /* of the length, or of the chunk */
    uint32_t stored;    /* bytes given out so far */
    uint8_t step;       /* of the chunked form */
    uint8_t digits;     /* of a chunk size */
    bool end;
};

/* Takes bytes of the wire, writes body bytes to out_body (capacity TG_MAX_HTTP_BODY_BYTES, at
 * offset body->stored). NONE, MALFORMED or TOO_LARGE. *out_taken: bytes used; bytes after the
 * body's end are left. */
enum tg_reason tg_http_body_feed(struct tg_http_body *body, const char *data, size_t length,
                                 char *out_body, size_t *out_taken);

/* The answer's head into out_text (TG_HTTP_ANSWER_HEAD_BYTES + length of answer->headers). Returns
 * its length. */
enum { TG_HTTP_ANSWER_HEAD_BYTES = 512 };
enum tg_http_persistence { TG_HTTP_KEEP, TG_HTTP_KEEP_SAY, TG_HTTP_CLOSE };
size_t tg_http_answer_head(const struct tg_http_answer *answer, struct tg_wall now,
                           enum tg_http_persistence persistence, char *out_text);

#endif
