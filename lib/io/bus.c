/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/bus_inner.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>

enum {
    REOPEN_MS = 1000,
    RENEW_MS = 20,
    FLUSH_MS_MAX = 500,
    SLOW_MEMORY_US = 5000000,
    DRAIN_US = 5000
};

bool tg_bus_connected(const struct tg_bus *bus)
{
    return bus->connection != NULL && !bus->freeing && atomic_load(&bus->link.attached) &&
           atomic_load(&bus->link.announced);
}

int64_t tg_bus_payload_max(const struct tg_bus *bus)
{
    return tg_bus_connected(bus) ? natsConnection_GetMaxPayload(bus->connection) : 0;
}

static bool is_slow(const struct tg_bus *bus)
{
    return bus->slow_us != 0 && tg_now_us() - bus->slow_us <= SLOW_MEMORY_US;
}

bool tg_bus_healthy(const struct tg_bus *bus)
{
    return tg_bus_connected(bus) && !is_slow(bus) && !bus->denied;
}

const char *tg_bus_fault(const struct tg_bus *bus)
{
    if (!tg_bus_connected(bus)) {
        return bus->fault[0] != '\0' ? bus->fault : "not connected to NATS";
    }
    return bus->denied ? bus->fault : is_slow(bus) ? "behind with messages of NATS" : "";
}

struct tg_series *bus_series(struct tg_series **slot, enum tg_metric metric, const char *label)
{
    if (*slot == NULL) {
        *slot = tg_metric_series(metric, label);
    }
    return *slot;
}

static void make_subscription(struct tg_bus *bus, struct bus_subscription *subscription)
{
    natsSubscription *handle = NULL;
    natsStatus s;

    if (subscription->duty == BUS_DUTY_INBOX) {
        s = natsConnection_Subscribe(&handle, bus->connection, subscription->subject,
                                     bus_link_answer, bus);
    } else if (subscription->queue == NULL) {
        s = natsConnection_SubscribeSync(&handle, bus->connection, subscription->subject);
    } else {
        s = natsConnection_QueueSubscribeSync(&handle, bus->connection, subscription->subject,
                                              subscription->queue);
    }
    if (s == NATS_OK && subscription->duty == BUS_DUTY_INBOX) {
        atomic_fetch_add(&bus->link.deliveries, 1);
        if (natsSubscription_SetOnCompleteCB(handle, bus_link_delivered, bus) != NATS_OK) {
            atomic_fetch_sub(&bus->link.deliveries, 1);
        }
    }
    if (s == NATS_OK) {
        subscription->handle = handle;
        natsSubscription_SetPendingLimits(handle, TG_MAX_BUS_PENDING, -1);
    }
}

static void make_subscriptions(struct tg_bus *bus)
{
    for (size_t i = 0; i < bus->subscription_count && tg_bus_connected(bus); i++) {
        if (bus->subscriptions[i].handle == NULL) {
            make_subscription(bus, &bus->subscriptions[i]);
        }
    }
}

int bus_subscribe(struct tg_bus *bus, const struct bus_subscription *wanted,
                  struct bus_subscription **out_subscription)
{
    struct bus_subscription *subscription;

    if (bus->subscription_count == BUS_SUBSCRIPTIONS) {
        return TG_ERR_FULL;
    }
    subscription = &bus->subscriptions[bus->subscription_count++];
    *subscription = *wanted;
    make_subscriptions(bus);
    if (out_subscription != NULL) {
        *out_subscription = subscription;
    }
    return 0;
}

/* Closed first: giving subscriptions back would write to the server again, and closing would wait
 * for that. */
static void forget_connection(struct tg_bus *bus)
{
    natsConnection_Close(bus->connection);
    for (size_t i = 0; i < bus->subscription_count; i++) {
        natsSubscription_Destroy(bus->subscriptions[i].handle);
        bus->subscriptions[i].handle = NULL;
    }
    natsConnection_Destroy(bus->connection);
    bus->connection = NULL;
    bus_link_drop(&bus->link);
}

static void on_reopen(uv_timer_t *timer);

/* What an attempt of ours met, in words for who has to mend it. */
static void note_fault(struct tg_bus *bus, natsStatus s)
{
    const char *text = nats_GetLastError(NULL);
    const char *words = text != NULL ? strstr(text, "): ") : NULL; /* behind its "(file:line): " */

    if (s == NATS_CONNECTION_AUTH_FAILED) {
        snprintf(bus->fault, sizeof(bus->fault),
                 bus->keys != NULL
                     ? "NATS does not know the key of the identity %s"
                     : "NATS wants an NKey of the identity %s: set TIDEGATE_NATS_KEYS",
                 bus->identity);
    } else {
        snprintf(bus->fault, sizeof(bus->fault), "not connected to NATS: %s",
                 words != NULL ? words + 3 : natsStatus_GetText(s));
    }
}

/* One attempt. `patient`: where nobody answers, the library goes on trying in its thread; it would
 * also go on where the server refuses us, and forget why. */
static int attempt(struct tg_bus *bus, bool patient, natsStatus *out_status)
{
    natsOptions *options = NULL;
    int error;

    if (natsOptions_Create(&options) != NATS_OK) {
        return -ENOMEM;
    }
    error = bus_link_options(bus, options, patient);
    if (error == 0) {
        atomic_store(&bus->link.closed, false);
        *out_status = natsConnection_Connect(&bus->connection, options);
    }
    natsOptions_Destroy(options);
    return error;
}

static bool nobody_there(natsStatus s)
{
    return s == NATS_NO_SERVER || s == NATS_TIMEOUT || s == NATS_IO_ERROR ||
           s == NATS_CONNECTION_CLOSED;
}

/* Blocks for the connect time-out at most, twice where nobody answers. */
static int connect_now(struct tg_bus *bus)
{
    natsStatus s = NATS_OK;
    int error;

    bus->fault[0] = '\0';
    error = attempt(bus, false, &s);
    if (error == 0 && nobody_there(s)) {
        error = attempt(bus, true, &s);
    }
    if (error != 0) {
        return error;
    }
    if (s == NATS_OK) {
        atomic_store(&bus->link.announced, true);
    } else if (s == NATS_INVALID_ARG || s == NATS_ADDRESS_MISSING || s == NATS_NO_MEMORY) {
        return TG_ERR_SETTING;
    } else if (s != NATS_NOT_YET_CONNECTED) {
        note_fault(bus, s);
        bus->connection = NULL;
        uv_timer_start(&bus->reopen, on_reopen, REOPEN_MS, 0);
    }
    bus_link_apply(bus);
    bus_look(bus);
    return 0;
}

static void on_reopen(uv_timer_t *timer)
{
    struct tg_bus *bus = timer->data;

    if (connect_now(bus) != 0) {
        uv_timer_start(&bus->reopen, on_reopen, REOPEN_MS, 0);
    }
}

static void free_texts(struct tg_bus *bus)
{
    free(bus->url);
    free(bus->keys);
    free(bus->ca);
    free(bus->server_name);
    sodium_memzero(&bus->nkey, sizeof(bus->nkey));
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct tg_bus *bus = handle->data;

    if (--bus->handles_open > 0) {
        return;
    }
    for (natsMsg *left = bus_link_next_answer(&bus->link); left != NULL;
         left = bus_link_next_answer(&bus->link)) {
        natsMsg_Destroy(left);
    }
    free(bus->link.answers);
    uv_mutex_destroy(&bus->link.lock);
    bus_arena_free(&bus->scratch);
    free(bus->calls.table);
    free_texts(bus);
    free(bus);
}

/* The library has made its last call: nothing but the loop's own handles are left. */
static void finish(struct tg_bus *bus)
{
    if (bus->link.fd_next >= 0) {
        bus_link_apply(bus);
        bus_link_drop(&bus->link);
    }
    uv_close((uv_handle_t *)&bus->link.wake, on_handle_closed);
    uv_close((uv_handle_t *)&bus->tick, on_handle_closed);
    uv_close((uv_handle_t *)&bus->reopen, on_handle_closed);
    uv_close((uv_handle_t *)&bus->check, on_handle_closed);
    uv_close((uv_handle_t *)&bus->idle, on_handle_closed);
}

/* Taken under the lock, so that the thread that reported last has left it. */
static bool library_is_done(struct tg_bus *bus)
{
    bool done;

    uv_mutex_lock(&bus->link.lock);
    done = atomic_load(&bus->link.closed) && atomic_load(&bus->link.deliveries) == 0;
    uv_mutex_unlock(&bus->link.lock);
    return done;
}

void bus_look(struct tg_bus *bus)
{
    unsigned slow = atomic_exchange(&bus->link.slow, 0);
    bool up = tg_bus_connected(bus);

    if (slow > 0) {
        bus->slow_us = tg_now_us();
        tg_metric_add(TG_METRIC_BUS_SLOW, "", slow);
    }
    bus->denied = bus_link_denied(bus, bus->fault);
    if (bus->freeing) {
        if (library_is_done(bus) && !uv_is_closing((const uv_handle_t *)&bus->link.wake)) {
            finish(bus);
        }
        return;
    }
    if (atomic_load(&bus->link.closed) && bus->connection != NULL) {
        forget_connection(bus); /* refused credentials end the library's own retries */
        uv_timer_start(&bus->reopen, on_reopen, REOPEN_MS, 0);
    }
    if (up) {
        make_subscriptions(bus);
    }
    if (up == bus->up) {
        return;
    }
    bus->up = up;
    tg_metric_set(TG_METRIC_BUS_CONNECTED, "", up ? 1 : 0);
    if (!up) {
        bus_calls_fail(bus, TG_ERR_DISCONNECTED);
    }
}

static void dispatch(struct tg_bus *bus, struct bus_subscription *subscription, natsMsg *message)
{
    switch (subscription->duty) {
    case BUS_DUTY_SERVE:
        bus_serve_message(bus, subscription, message);
        return;
    case BUS_DUTY_INBOX: /* comes by bus_link_answer */
        break;
    case BUS_DUTY_SERVICE:
        bus_service_answer(bus, subscription->verb, message);
        break;
    }
    natsMsg_Destroy(message);
}

static bool drain_answers(struct tg_bus *bus)
{
    for (int i = 0; i < BUS_DRAIN_MESSAGES; i++) {
        natsMsg *message = bus_link_next_answer(&bus->link);
        if (message == NULL || bus->freeing) {
            natsMsg_Destroy(message);
            return false;
        }
        bus_calls_reply(bus, message);
        natsMsg_Destroy(message);
    }
    return true;
}

/* At most BUS_DRAIN_MESSAGES; true when more may be waiting. */
static bool drain_one(struct tg_bus *bus, struct bus_subscription *subscription)
{
    uint64_t queued = 0;
    natsMsg *message;

    if (subscription->duty == BUS_DUTY_INBOX) {
        return drain_answers(bus);
    }
    if (subscription->handle == NULL ||
        natsSubscription_QueuedMsgs(subscription->handle, &queued) != NATS_OK) {
        return false;
    }
    for (uint64_t i = 0; i < queued && i < BUS_DRAIN_MESSAGES; i++) {
        if (subscription->handle == NULL ||
            natsSubscription_NextMsg(&message, subscription->handle, 0) != NATS_OK) {
            return false;
        }
        dispatch(bus, subscription, message);
        if (bus->freeing) {
            return false;
        }
    }
    return queued > BUS_DRAIN_MESSAGES;
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* only keeps the loop from sleeping; the check handle drains */
}

/* Turn by turn, so that no subject starves another, for a bounded time, so that nothing else
 * starves. */
void bus_drain(struct tg_bus *bus)
{
    uint64_t until_us = tg_now_us() + DRAIN_US;
    bool more = true;

    while (more && !bus->freeing && tg_now_us() < until_us) {
        more = false;
        for (size_t i = 0; i < bus->subscription_count && !bus->freeing; i++) {
            more |= drain_one(bus, &bus->subscriptions[i]);
        }
    }
    if (bus->freeing) {
        return;
    }
    if (more) {
        uv_idle_start(&bus->idle, on_idle);
    } else {
        uv_idle_stop(&bus->idle);
    }
}

static void on_check(uv_check_t *check)
{
    struct tg_bus *bus = check->data;

    if (uv_is_active((const uv_handle_t *)&bus->idle)) {
        bus_drain(bus);
    }
    if (!bus->freeing && bus->up != tg_bus_connected(bus)) {
        bus_look(bus);
    }
    if (!bus->freeing) {
        bus_calls_expire(bus);
    }
}

static int open_handles(struct tg_bus *bus, uv_loop_t *loop)
{
    int error = bus_link_open(bus, loop);

    if (error != 0) {
        return error;
    }
    bus->handles_open = 5;
    uv_timer_init(loop, &bus->tick);
    uv_timer_init(loop, &bus->reopen);
    uv_check_init(loop, &bus->check);
    uv_idle_init(loop, &bus->idle);
    bus->tick.data = bus->reopen.data = bus->check.data = bus->idle.data = bus;
    uv_check_start(&bus->check, on_check);
    uv_unref((uv_handle_t *)&bus->check);
    return 0;
}

/* A copy; NULL stays NULL, and "" becomes it. */
static int keep(const char *text, char **out_copy)
{
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    *out_copy = strdup(text);
    return *out_copy == NULL ? -ENOMEM : 0;
}

static int fill_name(char *out_name, size_t capacity, const char *name)
{
    return tg_sale_name_valid(name, strlen(name)) &&
                   snprintf(out_name, capacity, "%s", name) < (int)capacity
               ? 0
               : TG_ERR_RANGE;
}

static int fill(struct tg_bus *bus, const struct tg_bus_spec *spec)
{
    struct bus_subscription inbox = {.duty = BUS_DUTY_INBOX};

    if (fill_name(bus->daemon, sizeof(bus->daemon), spec->daemon) != 0 ||
        fill_name(bus->instance, sizeof(bus->instance), spec->instance) != 0 ||
        fill_name(bus->identity, sizeof(bus->identity), spec->identity) != 0 ||
        spec->url[0] == '\0') {
        return TG_ERR_RANGE;
    }
    if (keep(spec->url, &bus->url) != 0 || keep(spec->keys, &bus->keys) != 0 ||
        keep(spec->ca, &bus->ca) != 0 || keep(spec->server_name, &bus->server_name) != 0) {
        return -ENOMEM;
    }
    bus->started = tg_now_wall();
    snprintf(bus->inbox, sizeof(bus->inbox), "_INBOX.tidegate.%s.%s.", bus->identity,
             bus->instance);
    snprintf(inbox.subject, sizeof(inbox.subject), "%s*", bus->inbox);
    if (bus_subscribe(bus, &inbox, NULL) != 0 || bus_service_open(bus) != 0) {
        return TG_ERR_FULL;
    }
    return bus_calls_open(&bus->calls);
}

int tg_bus_open(uv_loop_t *loop, const struct tg_bus_spec *spec, struct tg_bus **out_bus)
{
    struct tg_bus *bus = calloc(1, sizeof(*bus));
    int error;

    if (bus == NULL) {
        return -ENOMEM;
    }
    error = fill(bus, spec);
    if (error == 0) {
        error = open_handles(bus, loop);
    }
    if (error != 0) {
        free(bus->calls.table);
        free_texts(bus);
        free(bus);
        return error;
    }
    tg_metric_set(TG_METRIC_BUS_CONNECTED, "", 0);
    error = connect_now(bus);
    if (error != 0) {
        tg_bus_free(bus);
        return error;
    }
    *out_bus = bus;
    return 0;
}

/* Hands what is buffered to the kernel: the library would wait for a PONG that only our loop could
 * read. */
static void flush(struct tg_bus *bus)
{
    uint64_t until_us = tg_now_us() + FLUSH_MS_MAX * 1000;

    while (tg_bus_connected(bus) && natsConnection_Buffered(bus->connection) > 0 &&
           tg_now_us() < until_us) {
        struct pollfd writable = {.fd = bus->link.poll_fd, .events = POLLOUT};
        if (bus->link.poll == NULL || poll(&writable, 1, FLUSH_MS_MAX) <= 0) {
            return;
        }
        natsConnection_ProcessWriteEvent(bus->connection);
    }
}

void tg_bus_renew(struct tg_bus *bus)
{
    struct tg_sign_key key;
    char name[sizeof(bus->identity) + 8];

    snprintf(name, sizeof(name), "nats-%s", bus->identity);
    if (bus->keys == NULL || bus->freeing || tg_keys_nkey(bus->keys, name, &key) != 0) {
        return;
    }
    if (bus->connection != NULL &&
        memcmp(key.public_key, bus->nkey.public_key, sizeof(key.public_key)) != 0) {
        flush(bus);
        forget_connection(bus);
        bus_look(bus);
        uv_timer_start(&bus->reopen, on_reopen, RENEW_MS, 0);
    }
    sodium_memzero(&key, sizeof(key));
}

struct tg_bus *tg_bus_free(struct tg_bus *bus)
{
    bool never;

    if (bus == NULL || bus->freeing) {
        return NULL;
    }
    flush(bus);
    never = bus->connection == NULL;
    bus->freeing = true;
    uv_timer_stop(&bus->tick);
    uv_timer_stop(&bus->reopen);
    uv_check_stop(&bus->check);
    uv_idle_stop(&bus->idle);
    bus_serve_free(bus);
    forget_connection(bus);
    if (never) {
        atomic_store(&bus->link.closed, true);
    }
    bus_look(bus);
    return NULL;
}
