/* SPDX-License-Identifier: Apache-2.0
 * Connecting: name look-up, hiredis on our loop with hooks of our own (the packaged adapter ignores
 * poll errors, so that a dead socket hangs for ever), greeting, and letting go. */
#include "lib/io/kv_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- hooks of hiredis ---- */

static void poll_ready(uv_poll_t *handle, int status, int events);

static void poll_set(struct kv_poll *poll, int events)
{
    if (events == poll->events) {
        return;
    }
    poll->events = events;
    int error = events != 0 ? uv_poll_start(&poll->handle, events, poll_ready)
                            : uv_poll_stop(&poll->handle);
    if (error != 0 && poll->kv != NULL) {
        poll->kv->drop_wanted = true;
    }
}

static void poll_ready(uv_poll_t *handle, int status, int events)
{
    struct kv_poll *poll = handle->data;
    if (status < 0) {
        if (poll->kv != NULL) {
            poll->kv->drop_wanted = true;
        }
        return;
    }
    if (poll->redis != NULL && (events & UV_READABLE) != 0) {
        redisAsyncHandleRead(poll->redis);
    }
    if (poll->redis != NULL && poll->kv != NULL && kv_reader_overfull(poll->redis->c.reader)) {
        poll->kv->drop_wanted = true;
        poll_set(poll, 0); /* nothing more of it until it is dropped */
    }
    if (poll->redis != NULL && (events & UV_WRITABLE) != 0) {
        redisAsyncHandleWrite(poll->redis);
    }
}

static void hook_add_read(void *data)
{
    struct kv_poll *poll = data;
    poll_set(poll, poll->events | UV_READABLE);
}

static void hook_del_read(void *data)
{
    struct kv_poll *poll = data;
    poll_set(poll, poll->events & ~UV_READABLE);
}

static void hook_add_write(void *data)
{
    struct kv_poll *poll = data;
    poll_set(poll, poll->events | UV_WRITABLE);
}

static void hook_del_write(void *data)
{
    struct kv_poll *poll = data;
    poll_set(poll, poll->events & ~UV_WRITABLE);
}

static void poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void hook_cleanup(void *data)
{
    struct kv_poll *poll = data;
    poll->redis = NULL;
    poll->kv = NULL;
    uv_close((uv_handle_t *)&poll->handle, poll_closed);
}

static int attach(struct tg_kv *kv, redisAsyncContext *redis)
{
    struct kv_poll *poll = calloc(1, sizeof *poll);
    if (poll == NULL) {
        return TG_ERR_FULL;
    }
    int error = uv_poll_init(kv->loop, &poll->handle, redis->c.fd);
    if (error != 0) {
        free(poll);
        return error;
    }
    poll->handle.data = poll;
    poll->redis = redis;
    poll->kv = kv;
    redis->ev.data = poll;
    redis->ev.addRead = hook_add_read;
    redis->ev.delRead = hook_del_read;
    redis->ev.addWrite = hook_add_write;
    redis->ev.delWrite = hook_del_write;
    redis->ev.cleanup = hook_cleanup;
    return 0;
}

/* ---- greeting ---- */

static bool info_field(const char *info, const char *name, char *out_value, size_t capacity)
{
    size_t name_length = strlen(name);
    for (const char *line = info; line != NULL && *line != '\0';) {
        if (strncmp(line, name, name_length) == 0 && line[name_length] == ':') {
            const char *value = line + name_length + 1;
            size_t length = strcspn(value, "\r\n");
            if (length >= capacity) {
                return false;
            }
            memcpy(out_value, value, length);
            out_value[length] = '\0';
            return true;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return false;
}

int tg_kv_server_read(const char *info, size_t length, struct tg_kv_server *out_server)
{
    struct tg_kv_server server = {.primary = false};
    char role[16], switched[4];
    if (memchr(info, '\0', length) != NULL) {
        return TG_ERR_MALFORMED;
    }
    if (!info_field(info, "run_id", server.run_id, sizeof server.run_id) ||
        !info_field(info, "redis_version", server.version, sizeof server.version) ||
        !info_field(info, "role", role, sizeof role) ||
        !info_field(info, "master_replid", server.replication_id, sizeof server.replication_id) ||
        !info_field(info, "maxmemory_policy", server.policy, sizeof server.policy)) {
        return TG_ERR_MALFORMED;
    }
    if (info_field(info, "loading", switched, sizeof switched) && strcmp(switched, "0") != 0) {
        return TG_ERR_DISCONNECTED;
    }
    server.append_only =
        info_field(info, "aof_enabled", switched, sizeof switched) && strcmp(switched, "1") == 0;
    server.primary = strcmp(role, "master") == 0;
    server.noeviction = strcmp(server.policy, "noeviction") == 0;
    *out_server = server;
    return 0;
}

static void note_fault(struct tg_kv *kv, const redisReply *reply)
{
    (void)snprintf(kv->fault, sizeof kv->fault, "Redis refuses us: %s",
                   reply->type == REDIS_REPLY_ERROR ? reply->str : "it is no Redis");
}

/* The answers of AUTH and SELECT: an error ends this attempt. */
static void on_accepted(redisAsyncContext *redis, void *raw_reply, void *data)
{
    struct tg_kv *kv = redis->data;
    const redisReply *reply = raw_reply;
    if (kv != NULL && reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        note_fault(kv, reply);
        kv->drop_wanted = true;
    }
}

static void on_info(redisAsyncContext *redis, void *raw_reply, void *data)
{
    struct tg_kv *kv = redis->data;
    const redisReply *reply = raw_reply;
    if (kv == NULL || reply == NULL || kv->state != KV_GREETING) {
        return;
    }
    if (reply->type != REDIS_REPLY_STRING ||
        tg_kv_server_read(reply->str, (size_t)reply->len, &kv->server) != 0) {
        if (kv->fault[0] == '\0') { /* what AUTH said tells more */
            note_fault(kv, reply);
        }
        kv->drop_wanted = true; /* no rights, loading, or not Redis */
        return;
    }
    kv->fault[0] = '\0';
    kv->state = KV_READY;
    kv->backoff_ms = KV_BACKOFF_MIN_MS;
    memset(kv->reloads, 0, sizeof kv->reloads);
    if (kv->on_change != NULL) {
        kv->on_change(kv->context, &kv->server);
    }
}

static int greet(struct tg_kv *kv)
{
    int failed = 0;
    if (kv->url.password[0] != '\0' && kv->url.user[0] != '\0') {
        failed |= redisAsyncCommand(kv->redis, on_accepted, NULL, "AUTH %s %s", kv->url.user,
                                    kv->url.password);
    } else if (kv->url.password[0] != '\0') {
        failed |= redisAsyncCommand(kv->redis, on_accepted, NULL, "AUTH %s", kv->url.password);
    }
    if (kv->url.database != 0) {
        failed |= redisAsyncCommand(kv->redis, on_accepted, NULL, "SELECT %u", kv->url.database);
    }
    failed |= redisAsyncCommand(kv->redis, on_info, NULL, "INFO");
    return failed;
}

/* ---- connecting and letting go ---- */

static void retry_later(struct tg_kv *kv)
{
    kv->state = KV_DOWN;
    kv->retry_at_ms = uv_now(kv->loop) + kv->backoff_ms;
    kv->backoff_ms =
        kv->backoff_ms * 2 < KV_BACKOFF_MAX_MS ? kv->backoff_ms * 2 : KV_BACKOFF_MAX_MS;
}

/* hiredis frees the context after either of these two. */
static void on_connected(const redisAsyncContext *redis, int status)
{
    struct tg_kv *kv = redis->data;
    if (kv != NULL && status != REDIS_OK) {
        kv->redis = NULL;
        retry_later(kv);
    }
}

static void on_disconnected(const redisAsyncContext *redis, int status)
{
    struct tg_kv *kv = redis->data;
    if (kv == NULL || kv->redis != redis) {
        return;
    }
    kv->redis = NULL;
    kv->drop_wanted = true; /* the rest happens outside of hiredis, in kv_drop */
}

static void open_context(struct tg_kv *kv, const char *address)
{
    redisAsyncContext *redis = kv->url.path[0] != '\0' ? redisAsyncConnectUnix(kv->url.path)
                                                       : redisAsyncConnect(address, kv->url.port);
    if (redis == NULL) {
        retry_later(kv);
        return;
    }
    if (redis->err != 0 || attach(kv, redis) != 0) {
        redisAsyncFree(redis);
        retry_later(kv);
        return;
    }
    tg_kv_bound_reader(redis->c.reader);
    redis->data = kv;
    kv->redis = redis;
    kv->state = KV_GREETING;
    kv->drop_wanted = false;
    kv->drop_status = TG_ERR_DISCONNECTED;
    kv->greeting_deadline_ms = uv_now(kv->loop) + kv->command_ms;
    if (redisAsyncSetConnectCallback(redis, on_connected) != REDIS_OK ||
        redisAsyncSetDisconnectCallback(redis, on_disconnected) != REDIS_OK || greet(kv) != 0) {
        kv->drop_wanted = true;
    }
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct tg_kv *kv = request->data;
    char address[64] = "";
    kv->resolver_busy = false;
    if (status == 0 && found != NULL) {
        int error = found->ai_family == AF_INET6
                        ? uv_ip6_name((const struct sockaddr_in6 *)(const void *)found->ai_addr,
                                      address, sizeof address)
                        : uv_ip4_name((const struct sockaddr_in *)(const void *)found->ai_addr,
                                      address, sizeof address);
        if (error != 0) {
            address[0] = '\0';
        }
    }
    uv_freeaddrinfo(found);
    if (kv->state == KV_CLOSED) {
        kv_finish_close(kv);
    } else if (address[0] == '\0') {
        retry_later(kv);
    } else {
        open_context(kv, address);
    }
}

void kv_connect(struct tg_kv *kv)
{
    assert(kv->state == KV_DOWN && kv->redis == NULL);
    struct sockaddr_storage numeric;
    if (kv->url.path[0] != '\0' ||
        uv_ip4_addr(kv->url.host, 0, (struct sockaddr_in *)(void *)&numeric) == 0 ||
        uv_ip6_addr(kv->url.host, 0, (struct sockaddr_in6 *)(void *)&numeric) == 0) {
        open_context(kv, kv->url.host);
        return;
    }
    /* A name: hiredis itself would block the loop on it. */
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    kv->resolver.data = kv;
    if (uv_getaddrinfo(kv->loop, &kv->resolver, on_resolved, kv->url.host, NULL, &hints) != 0) {
        retry_later(kv);
        return;
    }
    kv->resolver_busy = true;
    kv->state = KV_RESOLVING;
}

void kv_drop(struct tg_kv *kv, int status)
{
    bool was_ready = kv->state == KV_READY;
    kv->drop_wanted = false;
    kv->drop_status = status;
    if (kv->state != KV_CLOSED) {
        retry_later(kv); /* from here on nothing new is accepted */
    }
    redisAsyncContext *redis = kv->redis;
    kv->redis = NULL;
    if (redis != NULL) {
        redisAsyncFree(redis); /* calls back everything outstanding without a reply */
    }
    if (was_ready && kv->on_change != NULL) {
        kv->on_change(kv->context, NULL);
    }
}
