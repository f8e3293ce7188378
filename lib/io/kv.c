/* SPDX-License-Identifier: Apache-2.0
 * Commands: sending, answers, deadlines, scripts. */
#include "lib/io/kv_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- outstanding commands ---- */

static void pending_append(struct tg_kv *kv, struct kv_pending *pending)
{
    pending->deadline_ms = uv_now(kv->loop) + kv->command_ms;
    pending->sequence = ++kv->sequence;
    pending->previous = kv->last;
    pending->next = NULL;
    *(kv->last != NULL ? &kv->last->next : &kv->first) = pending;
    kv->last = pending;
    kv->in_flight++;
}

static void pending_unlink(struct tg_kv *kv, struct kv_pending *pending)
{
    *(pending->previous != NULL ? &pending->previous->next : &kv->first) = pending->next;
    *(pending->next != NULL ? &pending->next->previous : &kv->last) = pending->previous;
    kv->in_flight--;
}

static void pending_end(struct kv_pending *pending, int status, const redisReply *reply)
{
    struct tg_kv *kv = pending->kv;
    pending_unlink(kv, pending);
    pending->on_reply(pending->context, pending->token, status, reply);
    redisFreeCommand(pending->formatted);
    free(pending);
}

/* ---- scripts ---- */

/* The first command that meets NOSCRIPT sends the source again; others sent before that need not.
 */
static bool reload_wanted(struct tg_kv *kv, const struct kv_pending *pending)
{
    for (size_t i = 0; i < KV_RELOADS; i++) {
        struct kv_reload *reload = &kv->reloads[i];
        if (reload->script == pending->script || reload->script == NULL) {
            bool wanted = reload->script == NULL || reload->sequence < pending->sequence;
            reload->script = pending->script;
            reload->sequence = wanted ? kv->sequence : reload->sequence;
            return wanted;
        }
    }
    return true;
}

static void on_reply(redisAsyncContext *redis, void *raw_reply, void *data);

static void on_loaded(redisAsyncContext *redis, void *raw_reply, void *data)
{
    /* A script that does not load shows as a second NOSCRIPT at the command that follows. */
}

/* True when the command is on its way again. */
static bool repeat_after_noscript(struct tg_kv *kv, struct kv_pending *pending,
                                  const redisReply *reply)
{
    static const char no_script[] = "NOSCRIPT";
    if (pending->script == NULL || reply->type != REDIS_REPLY_ERROR ||
        strncmp(reply->str, no_script, sizeof no_script - 1) != 0 || kv->state != KV_READY) {
        return false;
    }
    if (reload_wanted(kv, pending) &&
        redisAsyncCommand(kv->redis, on_loaded, NULL, "SCRIPT LOAD %s", pending->script->source) !=
            REDIS_OK) {
        return false;
    }
    pending->script = NULL; /* once only */
    if (redisAsyncFormattedCommand(kv->redis, on_reply, pending, pending->formatted,
                                   pending->formatted_length) != REDIS_OK) {
        return false;
    }
    pending_unlink(kv, pending);
    pending_append(kv, pending);
    return true;
}

static void on_reply(redisAsyncContext *redis, void *raw_reply, void *data)
{
    struct kv_pending *pending = data;
    struct tg_kv *kv = pending->kv;
    const redisReply *reply = raw_reply;
    if (reply == NULL) {
        /* The connection is gone, whoever noticed: nothing new may be sent on it. */
        if (kv->state == KV_READY) {
            kv->drop_wanted = true;
        }
        pending_end(pending, kv->drop_status, NULL);
        return;
    }
    if (!repeat_after_noscript(kv, pending, reply)) {
        pending_end(pending, 0, reply);
    }
}

static int send_formatted(struct tg_kv *kv, struct kv_pending command, char *take_formatted,
                          int length)
{
    struct kv_pending *pending = malloc(sizeof *pending);
    if (pending == NULL || length < 0) {
        redisFreeCommand(take_formatted);
        free(pending);
        return TG_ERR_FULL;
    }
    *pending = command;
    pending->kv = kv;
    pending->formatted = take_formatted;
    pending->formatted_length = (size_t)length;
    if (redisAsyncFormattedCommand(kv->redis, on_reply, pending, take_formatted, (size_t)length) !=
        REDIS_OK) {
        redisFreeCommand(take_formatted);
        free(pending);
        return TG_ERR_DISCONNECTED;
    }
    pending_append(kv, pending);
    return 0;
}

static int admit(const struct tg_kv *kv)
{
    if (kv->state != KV_READY || kv->redis == NULL || kv->drop_wanted) {
        return TG_ERR_DISCONNECTED;
    }
    return kv->in_flight >= kv->in_flight_max ? TG_ERR_FULL : 0;
}

void tg_kv_flush(struct tg_kv *kv)
{
    /* An error stays in the context; the write event that is due already meets it. */
    int done = 0;
    if (admit(kv) != TG_ERR_DISCONNECTED) {
        (void)redisBufferWrite(&kv->redis->c, &done);
    }
}

int tg_kv_command(struct tg_kv *kv, int argc, const char *const *argv, const size_t *lengths,
                  tg_kv_on_reply *on_reply_, void *context, uint64_t token)
{
    int error = admit(kv);
    if (error != 0) {
        return error;
    }
    char *formatted = NULL;
    int length = redisFormatCommandArgv(&formatted, argc, (const char **)argv, lengths);
    struct kv_pending command = {.on_reply = on_reply_, .context = context, .token = token};
    return send_formatted(kv, command, formatted, length);
}

void tg_kv_script_prepare(struct tg_kv_script *script)
{
    uint8_t digest[KV_SHA1_BYTES];
    kv_sha1(script->source, strlen(script->source), digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        (void)snprintf(script->sha1 + 2 * i, 3, "%02x", digest[i]);
    }
}

/* NOLINTNEXTLINE(readability-function-size): the contract of kv.h, one parameter over */
int tg_kv_eval(struct tg_kv *kv, const struct tg_kv_script *script, int key_count, int argc,
               const char *const *argv, const size_t *lengths, tg_kv_on_reply *on_reply_,
               void *context, uint64_t token)
{
    int error = admit(kv);
    if (error != 0) {
        return error;
    }
    assert(argc >= key_count && argc <= KV_ARGUMENTS_MAX - 3);
    char keys[12];
    const char *full[KV_ARGUMENTS_MAX] = {"EVALSHA", script->sha1, keys};
    size_t full_lengths[KV_ARGUMENTS_MAX] = {7, sizeof script->sha1 - 1};
    full_lengths[2] = (size_t)snprintf(keys, sizeof keys, "%d", key_count);
    memcpy(full + 3, argv, (size_t)argc * sizeof *argv);
    for (int i = 0; i < argc; i++) {
        full_lengths[3 + i] = lengths != NULL ? lengths[i] : strlen(argv[i]);
    }
    char *formatted = NULL;
    int length = redisFormatCommandArgv(&formatted, argc + 3, full, full_lengths);
    struct kv_pending command = {
        .on_reply = on_reply_, .context = context, .token = token, .script = script};
    return send_formatted(kv, command, formatted, length);
}

/* ---- the clock and the life of it all ---- */

static void on_tick(uv_timer_t *timer)
{
    struct tg_kv *kv = timer->data;
    uint64_t now_ms = uv_now(kv->loop);
    bool late = kv->first != NULL && kv->first->deadline_ms <= now_ms;
    if (late || (kv->state == KV_GREETING && kv->greeting_deadline_ms <= now_ms)) {
        kv_drop(kv, TG_ERR_TIMEOUT);
    } else if (kv->drop_wanted) {
        kv_drop(kv, TG_ERR_DISCONNECTED);
    }
    if (kv->state == KV_DOWN && kv->retry_at_ms <= now_ms) {
        kv_connect(kv);
    }
}

int tg_kv_open(uv_loop_t *loop, const struct tg_kv_spec *spec, struct tg_kv **out_kv)
{
    struct tg_kv *kv = calloc(1, sizeof *kv);
    if (kv == NULL) {
        return TG_ERR_FULL;
    }
    int error = kv_url_parse(spec->url, &kv->url);
    if (error == 0) {
        error = uv_timer_init(loop, &kv->tick);
    }
    if (error != 0) {
        free(kv);
        return error;
    }
    kv->loop = loop;
    kv->command_ms = spec->command_ms;
    kv->in_flight_max = spec->in_flight_max;
    kv->on_change = spec->on_change;
    kv->context = spec->context;
    kv->state = KV_DOWN;
    kv->drop_status = TG_ERR_DISCONNECTED;
    kv->backoff_ms = KV_BACKOFF_MIN_MS;
    kv->tick.data = kv;
    error = uv_timer_start(&kv->tick, on_tick, 0, KV_TICK_MS);
    assert(error == 0); /* fails only without a callback */
    *out_kv = kv;
    return 0;
}

void kv_finish_close(struct tg_kv *kv)
{
    if (kv->tick_closed && !kv->resolver_busy) {
        free(kv);
    }
}

static void on_tick_closed(uv_handle_t *handle)
{
    struct tg_kv *kv = handle->data;
    kv->tick_closed = true;
    kv_finish_close(kv);
}

struct tg_kv *tg_kv_free(struct tg_kv *kv)
{
    if (kv == NULL) {
        return NULL;
    }
    kv->on_change = NULL;
    kv->state = KV_CLOSED;
    kv_drop(kv, TG_ERR_DISCONNECTED);
    uv_close((uv_handle_t *)&kv->tick, on_tick_closed);
    return NULL;
}

const struct tg_kv_server *tg_kv_server(const struct tg_kv *kv)
{
    return kv->state == KV_READY && !kv->drop_wanted ? &kv->server : NULL;
}

const char *tg_kv_fault(const struct tg_kv *kv)
{
    return kv->fault;
}

size_t tg_kv_in_flight(const struct tg_kv *kv)
{
    return kv->in_flight;
}

void tg_kv_reconnect(struct tg_kv *kv)
{
    /* Done at the next tick: the caller may stand inside an answer of this very connection. */
    kv->drop_wanted = true;
}
