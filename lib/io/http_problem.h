/* SPDX-License-Identifier: Apache-2.0
 * A refusal as RFC 9457 tells it, with the short code twice, so that both styles of client work:
 * {"type":"/reasons#sold_out","title":..,"status":409,"detail":..,"error":{"code":"sold_out"}}. */
#ifndef TG_IO_HTTP_PROBLEM_H
#define TG_IO_HTTP_PROBLEM_H

#include "lib/pure/reason.h"

#include <stddef.h>

enum { TG_HTTP_PROBLEM_BYTES = 2048 };
#define TG_HTTP_PROBLEM_TYPE "application/problem+json"

/* detail: a sentence about this very case, NULL = the row's. Escaped, cut to 512 bytes.
 * members: further JSON members, each with a comma in front, "" = none; at most 512 bytes, the
 * caller's to escape. out_text: TG_HTTP_PROBLEM_BYTES. Returns the length. reason is one with an
 * HTTP status. */
size_t tg_http_problem(enum tg_reason reason, const char *detail, const char *members,
                       char *out_text);

/* Appends text as the inside of a JSON string: quotes, backslash and control characters escaped,
 * bytes that are not UTF-8 replaced by '?'. Stops before capacity is exceeded. Returns the bytes
 * written, no NUL. */
size_t tg_http_json_escape(const char *text, size_t length, char *out_text, size_t capacity);

#endif
