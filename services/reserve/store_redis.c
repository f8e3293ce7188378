/* SPDX-License-Identifier: Apache-2.0 */
#include "services/reserve/store_redis.h"

#include "lib/io/kv.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"

#include <stdlib.h>
#include <string.h>

#define RESERVE_SCRIPT(id, name) extern const char reserve_lua_##name[];
#include "services/reserve/script.def"
#undef RESERVE_SCRIPT

/* A call in progress, by number. */
struct slot {
    uint64_t number; /* 0: free */
    reserve_on_answer *on_answer;
    void *context;
    uint64_t token;
    uint64_t began_us;
};

struct redis_store {
    struct reserve_store port; /* first: the port's pointer is ours */
    struct tg_kv *kv;
    struct tg_kv_script scripts[RESERVE_SCRIPT_COUNT];
    struct slot slots[TG_MAX_GATE_IN_FLIGHT];
    uint32_t free_slots[TG_MAX_GATE_IN_FLIGHT];
    uint32_t free_count;
    bool checking, asking;    /* what it is, what we may */
    const char *rights;       /* "" while that is not known */
    struct tg_kv_server seen; /* as last looked at; of the present connection */
    uint64_t calls;
    struct reserve_word words[RESERVE_WORDS_MAX];
    void (*on_change)(void *context, bool usable);
    void *context;
    struct tg_series *seconds;
    struct tg_series *endings[RESERVE_BROKEN + 1];
};

enum reserve_ending reserve_redis_error(const char *text, bool *out_reconnect)
{
    /* Said before the script ran, or at its first write: nothing was done. */
    static const char *const not_run[] = {"OOM",         "NOSCRIPT", "BUSY",    "MISCONF",
                                          "NOREPLICAS",  "NOPERM",   "NOAUTH",  "MOVED",
                                          "CLUSTERDOWN", "ASK",      "TRYAGAIN"};
    static const char *const wrong_place[] = {"READONLY", "LOADING", "MASTERDOWN"};
    *out_reconnect = false;
    for (size_t i = 0; i < sizeof wrong_place / sizeof wrong_place[0]; i++) {
        if (strncmp(text, wrong_place[i], strlen(wrong_place[i])) == 0) {
            *out_reconnect = true;
            return RESERVE_NOT_RUN;
        }
    }
    for (size_t i = 0; i < sizeof not_run / sizeof not_run[0]; i++) {
        if (strncmp(text, not_run[i], strlen(not_run[i])) == 0) {
            return RESERVE_NOT_RUN;
        }
    }
    return RESERVE_BROKEN;
}

/* An array of texts, or one text: its first word and the rest (cheaper for the script to make). */
static bool read_words(struct redis_store *store, const redisReply *reply, size_t *out_count)
{
    if (reply->type == REDIS_REPLY_STRING) {
        const char *space = memchr(reply->str, ' ', (size_t)reply->len);
        size_t first = space != NULL ? (size_t)(space - reply->str) : (size_t)reply->len;
        store->words[0] = (struct reserve_word){reply->str, first};
        store->words[1] =
            (struct reserve_word){reply->str + first + 1, (size_t)reply->len - first - 1};
        *out_count = space != NULL ? 2 : 1;
        return true;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements > RESERVE_WORDS_MAX) {
        return false;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *element = reply->element[i];
        bool text = element->type == REDIS_REPLY_STRING;
        store->words[i] =
            (struct reserve_word){text ? element->str : "", text ? (size_t)element->len : 0};
    }
    *out_count = reply->elements;
    return true;
}

/* Fills the answer from a reply; words are borrowed from it. */
static void read_reply(struct redis_store *store, const redisReply *reply,
                       struct reserve_answer *answer)
{
    bool reconnect = false;
    answer->words = store->words;
    if (reply->type == REDIS_REPLY_ERROR) {
        answer->ending = reserve_redis_error(reply->str, &reconnect);
        if (reconnect) {
            tg_kv_reconnect(store->kv);
        }
        return;
    }
    answer->ending = read_words(store, reply, &answer->count) ? RESERVE_ENDED : RESERVE_BROKEN;
}

static void on_reply(void *context, uint64_t number, int status, const redisReply *reply)
{
    struct redis_store *store = context;
    uint32_t index = (uint32_t)(number % TG_MAX_GATE_IN_FLIGHT);
    if (store->slots[index].number != number) {
        return;
    }
    struct slot slot = store->slots[index];
    store->slots[index].number = 0;
    store->free_slots[store->free_count++] = index;
    struct reserve_answer answer = {.ending = RESERVE_UNKNOWN};
    if (status == 0) {
        read_reply(store, reply, &answer);
    }
    tg_series_observe_us(store->seconds, tg_now_us() - slot.began_us);
    tg_series_add(store->endings[answer.ending], 1);
    slot.on_answer(slot.context, slot.token, &answer);
}

static int run(struct reserve_store *port, const struct reserve_call *call,
               reserve_on_answer *on_answer, void *context, uint64_t token)
{
    struct redis_store *store = (struct redis_store *)port;
    if (store->free_count == 0) {
        return TG_ERR_FULL;
    }
    uint32_t index = store->free_slots[store->free_count - 1];
    uint64_t number = ++store->calls * TG_MAX_GATE_IN_FLIGHT + index;
    int error = tg_kv_eval(store->kv, &store->scripts[call->script], call->key_count, call->count,
                           call->words, call->lengths, on_reply, store, number);
    if (error != 0) {
        return error;
    }
    store->free_count--;
    store->slots[index] = (struct slot){number, on_answer, context, token, tg_now_us()};
    return 0;
}

static const struct tg_kv_server *server_of(const struct reserve_store *port)
{
    const struct redis_store *store = (const struct redis_store *)port;
    bool connected = store->kv != NULL && tg_kv_server(store->kv) != NULL;
    return connected && store->seen.primary ? &store->seen : NULL;
}

static const char *run_id(const struct reserve_store *port)
{
    const struct tg_kv_server *server = server_of(port);
    return server != NULL ? server->run_id : NULL;
}

static const char *replication_id(const struct reserve_store *port)
{
    const struct tg_kv_server *server = server_of(port);
    return server != NULL ? server->replication_id : NULL;
}

static const char *fault(const struct reserve_store *port)
{
    return tg_kv_fault(((const struct redis_store *)port)->kv);
}

static bool noeviction(const struct reserve_store *port)
{
    const struct tg_kv_server *server = server_of(port);
    return server != NULL && server->noeviction;
}

static void configuration(const struct reserve_store *port, char *out_text, size_t capacity)
{
    const struct tg_kv_server *server = server_of(port);
    if (server != NULL) {
        (void)snprintf(out_text, capacity,
                       "redis_version %s\nmaxmemory_policy %s\nappend_only %s\n%s", server->version,
                       server->policy, server->append_only ? "on" : "off",
                       ((const struct redis_store *)port)->rights);
    }
}

static void on_checked(void *context, uint64_t token, int status, const redisReply *reply)
{
    struct redis_store *store = context;
    struct tg_kv_server now;
    store->checking = false;
    if (status != 0 || server_of(&store->port) == NULL) {
        return;
    }
    if (reply->type != REDIS_REPLY_STRING ||
        tg_kv_server_read(reply->str, (size_t)reply->len, &now) != 0 || !now.primary ||
        strcmp(now.replication_id, store->seen.replication_id) != 0) {
        tg_kv_reconnect(store->kv);
        return;
    }
    store->seen = now;
}

static void check(struct reserve_store *port)
{
    static const char *const words[] = {"INFO"};
    struct redis_store *store = (struct redis_store *)port;
    if (!store->checking) {
        store->checking = tg_kv_command(store->kv, 1, words, NULL, on_checked, store, 0) == 0;
    }
}

static void on_tried(void *context, uint64_t token, int status, const redisReply *reply)
{
    struct redis_store *store = context;
    store->asking = false;
    if (status == 0) {
        bool refused = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM", 6) == 0;
        store->rights = refused ? "redis_rights least\n" : "redis_rights to configure\n";
    }
}

/* Whether we may do what we never do. */
static void try_rights(struct redis_store *store)
{
    static const char *const words[] = {"CONFIG", "GET", "maxmemory-policy"};
    store->rights = "";
    if (!store->asking) {
        store->asking = tg_kv_command(store->kv, 3, words, NULL, on_tried, store, 0) == 0;
    }
}

static void connection_changed(void *context, const struct tg_kv_server *server)
{
    struct redis_store *store = context;
    bool usable = server != NULL && server->primary;
    store->seen = server != NULL ? *server : (struct tg_kv_server){.primary = false};
    tg_metric_set(TG_METRIC_GATE_CONNECTED, "", usable ? 1 : 0);
    if (server != NULL && !server->primary) {
        tg_kv_reconnect(
            store->kv); /* a replica: look again until it, or the name, is the primary */
    }
    if (usable) {
        try_rights(store);
    }
    store->on_change(store->context, usable);
}

static void prepare(struct redis_store *store)
{
    static const char *const endings[] = {"answered", "unknown", "not_run", "broken"};
    static const char *const sources[] = {
#define RESERVE_SCRIPT(id, name) reserve_lua_##name,
#include "services/reserve/script.def"
#undef RESERVE_SCRIPT
    };
    for (int i = 0; i < RESERVE_SCRIPT_COUNT; i++) {
        store->scripts[i].name = reserve_script_name((enum reserve_script)i);
        store->scripts[i].source = sources[i];
        tg_kv_script_prepare(&store->scripts[i]);
    }
    for (uint32_t i = 0; i < TG_MAX_GATE_IN_FLIGHT; i++) {
        store->free_slots[i] = i;
    }
    store->free_count = TG_MAX_GATE_IN_FLIGHT;
    store->seconds = tg_metric_series(TG_METRIC_GATE_SECONDS, "");
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        store->endings[i] = tg_metric_series(TG_METRIC_GATE_COMMANDS, endings[i]);
    }
}

int reserve_store_redis_open(uv_loop_t *loop, const char *url,
                             void (*on_change)(void *context, bool usable), void *context,
                             struct reserve_store **out_store)
{
    struct redis_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return TG_ERR_FULL;
    }
    prepare(store);
    store->rights = "";
    store->port = (struct reserve_store){run,        run_id,        replication_id, fault,
                                         noeviction, configuration, check};
    store->on_change = on_change;
    store->context = context;
    const struct tg_kv_spec spec = {.url = url,
                                    .command_ms = TG_MAX_GATE_COMMAND_MS,
                                    .in_flight_max =
                                        TG_MAX_GATE_IN_FLIGHT + 2, /* and the two checks */
                                    .on_change = connection_changed,
                                    .context = store};
    int error = tg_kv_open(loop, &spec, &store->kv);
    if (error != 0) {
        free(store);
        return error;
    }
    *out_store = &store->port;
    return 0;
}

struct reserve_store *reserve_store_redis_free(struct reserve_store *port)
{
    if (port != NULL) {
        struct redis_store *store = (struct redis_store *)port;
        store->kv = tg_kv_free(store->kv);
        free(store);
    }
    return NULL;
}
