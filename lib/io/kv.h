/* SPDX-License-Identifier: Apache-2.0
 * Redis through hiredis on our loop: one pipelined connection with a deadline per command,
 * automatic reconnect, embedded scripts by SHA with one transparent reload. A command that times
 * out or whose connection breaks is UNKNOWN: hiredis fails everything outstanding with it
 * (case-06). */
#ifndef TG_IO_KV_H
#define TG_IO_KV_H

#include "lib/pure/error.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct tg_kv;

/* What is known of the Redis behind the present connection, read when it opened. */
struct tg_kv_server {
    char run_id[41];
    char replication_id[41];
    bool primary;
    bool noeviction;
    char version[16];
    char policy[32]; /* maxmemory_policy */
    bool append_only;
};

/* From the text of INFO. 0, or TG_ERR_MALFORMED when something needed is missing,
 * TG_ERR_DISCONNECTED while Redis is loading. */
TG_MUST_CHECK int tg_kv_server_read(const char *info, size_t length,
                                    struct tg_kv_server *out_server);

/* A reader that refuses an array of more than TG_MAX_REPLY_ELEMENTS when it is announced. For every
 * connection, and for tests that read the protocol themselves. */
void tg_kv_bound_reader(redisReader *reader);

struct tg_kv_spec {
    const char *url; /* redis://[user:password@]host:port[/db] or unix:///path */
    uint32_t command_ms;
    uint32_t in_flight_max;
    /* Called when a connection is usable (server filled) and when it is lost (NULL). */
    void (*on_change)(void *context, const struct tg_kv_server *server);
    void *context;
};

TG_MUST_CHECK int tg_kv_open(uv_loop_t *loop, const struct tg_kv_spec *spec, struct tg_kv **out_kv);
struct tg_kv *tg_kv_free(struct tg_kv *kv);
/* NULL while there is no usable connection. */
const struct tg_kv_server *tg_kv_server(const struct tg_kv *kv);
/* What Redis said when it last refused us (AUTH, INFO), or "" where it said nothing. */
const char *tg_kv_fault(const struct tg_kv *kv);
size_t tg_kv_in_flight(const struct tg_kv *kv);
/* Drops the connection and connects anew (after READONLY, a doubt about run_id, …). */
void tg_kv_reconnect(struct tg_kv *kv);

/* status: 0 and the reply (borrowed; REDIS_REPLY_ERROR is passed through), or TG_ERR_TIMEOUT /
 * TG_ERR_DISCONNECTED (unknown). */
typedef void tg_kv_on_reply(void *context, uint64_t token, int status, const redisReply *reply);

/* 0 (then on_reply is called exactly once), TG_ERR_DISCONNECTED or TG_ERR_FULL. */
TG_MUST_CHECK int tg_kv_command(struct tg_kv *kv, int argc, const char *const *argv,
                                const size_t *lengths, tg_kv_on_reply *on_reply, void *context,
                                uint64_t token);

/* Sends what was asked so far now, not at the loop's next turn: for a caller who is about to
 * compute for a while, so that Redis works meanwhile. */
void tg_kv_flush(struct tg_kv *kv);

/* A script embedded at build time. */
struct tg_kv_script {
    const char *name;
    const char *source;
    char sha1[41]; /* filled by tg_kv_script_prepare */
};
void tg_kv_script_prepare(struct tg_kv_script *script);
/* EVALSHA; on NOSCRIPT loads and repeats once. argv = keys then arguments. */
TG_MUST_CHECK int tg_kv_eval(struct tg_kv *kv, const struct tg_kv_script *script, int key_count,
                             int argc, const char *const *argv, const size_t *lengths,
                             tg_kv_on_reply *on_reply, void *context, uint64_t token);

#endif
