/* SPDX-License-Identifier: Apache-2.0
 * The inside of lib/io/kv: one connection, its outstanding commands, its way back. Not for others
 * to include. */
#ifndef TG_IO_KV_INTERNAL_H
#define TG_IO_KV_INTERNAL_H

#include "lib/io/kv.h"

#include <hiredis/async.h>

enum {
    KV_TICK_MS = 20, /* how late a deadline may be noticed */
    KV_BACKOFF_MIN_MS = 50,
    KV_BACKOFF_MAX_MS = 1000,
    KV_RELOADS = 32,        /* scripts one process has */
    KV_ARGUMENTS_MAX = 512, /* keys and arguments of one script call */
    KV_SHA1_BYTES = 20
};

enum kv_state {
    KV_DOWN,      /* waiting for the next attempt */
    KV_RESOLVING, /* a name is being looked up */
    KV_GREETING,  /* connecting, AUTH, SELECT, INFO */
    KV_READY,
    KV_CLOSED /* tg_kv_free was called */
};

struct kv_url {
    char host[256];
    char path[108]; /* unix socket; empty: TCP */
    char user[128];
    char password[256];
    uint16_t port;
    uint32_t database;
};

/* One outstanding command: known to hiredis by pointer, to everybody else by token. */
struct kv_pending {
    struct kv_pending *previous, *next;
    struct tg_kv *kv;
    tg_kv_on_reply *on_reply;
    void *context;
    uint64_t token;
    uint64_t deadline_ms;
    uint64_t sequence;
    const struct tg_kv_script *script; /* NULL for a plain command */
    char *formatted;                   /* kept for the one repetition after NOSCRIPT */
    size_t formatted_length;
};

struct kv_reload {
    const struct tg_kv_script *script;
    uint64_t sequence; /* commands sent before it need no reload of their own */
};

/* The poll handle outlives the context by one loop turn, so it is an allocation of its own. */
struct kv_poll {
    uv_poll_t handle;
    redisAsyncContext *redis;
    struct tg_kv *kv;
    int events;
};

enum { KV_FAULT_BYTES = 128 };

struct tg_kv {
    uv_loop_t *loop;
    struct kv_url url;
    uint32_t command_ms;
    uint32_t in_flight_max;
    void (*on_change)(void *context, const struct tg_kv_server *server);
    void *context;

    enum kv_state state;
    redisAsyncContext *redis;
    struct tg_kv_server server;
    struct kv_pending *first, *last;
    size_t in_flight;
    uint64_t sequence;
    uint64_t greeting_deadline_ms;
    uint64_t retry_at_ms;
    uint32_t backoff_ms;
    bool drop_wanted;
    char fault[KV_FAULT_BYTES]; /* what Redis said when it last refused us; "" once it did not */
    int drop_status;            /* what outstanding commands are told */
    struct kv_reload reloads[KV_RELOADS];
    uv_timer_t tick;
    uv_getaddrinfo_t resolver;
    bool resolver_busy;
    bool tick_closed;
};

/* 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int kv_url_parse(const char *text, struct kv_url *out_url);

/* More was received than any reply may have. */
bool kv_reader_overfull(const redisReader *reader);

/* Begins an attempt: look-up, connect, greeting. Failures end in KV_DOWN with the next attempt
 * scheduled. */
void kv_connect(struct tg_kv *kv);
/* Lets go of the connection: every outstanding command is told `status`, then on_change(NULL) if it
 * had been usable. */
void kv_drop(struct tg_kv *kv, int status);
/* FIPS 180-4; Redis names scripts by it, nothing secret depends on it. */
void kv_sha1(const char *data, size_t length, uint8_t out_digest[KV_SHA1_BYTES]);
/* Frees the memory once handles and look-up are closed. */
void kv_finish_close(struct tg_kv *kv);

#endif
