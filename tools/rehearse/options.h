/* SPDX-License-Identifier: Apache-2.0
 * What the command line and the environment say: strictly read, every fault told. */
#ifndef REHEARSE_OPTIONS_H
#define REHEARSE_OPTIONS_H

#include "lib/io/jwt.h"
#include "tools/rehearse/client.h"

struct rehearse_options {
    /* command line */
    const char *sale, *out;
    uint32_t buyers;
    uint32_t units; /* 0: whatever the sale has */
    uint32_t arrive_s;
    uint32_t abandon_percent, duplicate_percent;
    int64_t pay_ms;
    uint32_t connections;
    uint32_t caches;
    uint32_t settle_s; /* wait until every hold is confirmed or returned; 0: don't */
    uint32_t limit_s;  /* of the whole run */
    bool faults;       /* somebody breaks things on purpose: 5xx are reported, not judged */
    bool corrupted;    /* somebody tampers with a store, or it loses data: the checker must alarm */
    /* environment */
    const char *ledger_url, *redis_url, *run; /* run: "" when there is no run folder */
    char host[256];                           /* of the first edge, for Host */
    struct sockaddr_storage edges[REHEARSE_EDGES_MAX];
    size_t edge_count;
    uint8_t buyer_secret[32];
    char service_credential[128];
};

/* 0 to go on; else the exit code, after saying why (0x100: help was asked for, nothing is wrong).
 */
int rehearse_read_options(int argc, char **argv, struct rehearse_options *out_options);
enum { REHEARSE_HELPED = 0x100 };

#endif
