/* SPDX-License-Identifier: Apache-2.0
 * How often one caller may ask. Counted by ticket holder or account; by address only where the
 * operator wants it and there is nothing better. Being over the rate never costs a place. */
#ifndef EDGE_LIMIT_H
#define EDGE_LIMIT_H

#include "services/edge/service.h"
#include "services/edge/writer.h"

/* Reads the settings into edge->limits. 0 or TG_ERR_SETTING, with a sentence on stderr. */
int edge_limits_read(struct edge *edge);

/* NONE or RATE_LIMITED. */
enum tg_reason edge_limit_holder(const struct edge_request *request,
                                 const struct tg_holder *holder);
/* The same for a new place of somebody without account; NONE when his address is not known. */
enum tg_reason edge_limit_address(const struct edge_request *request);

/* Counts one act of a name at one of edge->limits' rates: NONE within it, else RATE_LIMITED. */
enum tg_reason edge_limit_ask(const struct edge_request *request, struct tg_rate *rate,
                              const void *name, size_t length);

/* Where the request came from, behind our own proxies. False: not known. */
bool edge_client_address(const struct edge_request *request, uint8_t out_address[16]);

/* RateLimit-Policy and RateLimit of a 429 (draft-ietf-httpapi-ratelimit-headers-10). */
void edge_limit_headers(const struct edge *edge, struct edge_writer *headers);

#endif
