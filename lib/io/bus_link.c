/* SPDX-License-Identifier: Apache-2.0
 * nats.c on our loop. Its hooks and callbacks come from its own threads (reconnect, ping timer,
 * callbacks), so they only note what is wanted and wake the loop. The loop polls a duplicate of the
 * socket: the library closes its descriptor in whichever thread finds it dead, and a number reused
 * by another connection would confuse the loop's own table. */
#include "lib/io/bus_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

enum { CONNECT_MS = 1000, RECONNECT_WAIT_MS = 200, RECONNECT_JITTER_MS = 100 };
enum { PING_MS = 1000, PINGS_OUT = 2, READ_BYTES = 65536 };

static bool on_loop(const struct bus_link *link)
{
    uv_thread_t self = uv_thread_self();
    return uv_thread_equal(&self, &link->loop_thread) != 0;
}

static void on_poll_closed(uv_handle_t *handle)
{
    close((int)(intptr_t)handle->data);
    free(handle);
}

void bus_link_drop(struct bus_link *link)
{
    if (link->poll != NULL) {
        link->poll->data = (void *)(intptr_t)link->poll_fd;
        uv_close((uv_handle_t *)link->poll, on_poll_closed);
        link->poll = NULL;
    }
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct tg_bus *bus = poll->data;
    natsConnection *connection = bus->link.connection;

    if (!atomic_load(&bus->link.attached) || connection == NULL) {
        return;
    }
    if (status != 0 || (events & UV_READABLE) != 0) {
        natsConnection_ProcessReadEvent(connection);
    }
    if (status == 0 && (events & UV_WRITABLE) != 0 && atomic_load(&bus->link.attached)) {
        natsConnection_ProcessWriteEvent(connection);
    }
    bus_drain(bus);
}

static int poll_new(struct tg_bus *bus, int fd)
{
    struct bus_link *link = &bus->link;
    int error;

    bus_link_drop(link);
    link->poll = malloc(sizeof(*link->poll));
    if (link->poll == NULL) {
        close(fd);
        return -ENOMEM;
    }
    error = uv_poll_init(link->loop, link->poll, fd);
    if (error != 0) {
        free(link->poll);
        link->poll = NULL;
        close(fd);
        return error;
    }
    link->poll->data = bus;
    link->poll_fd = fd;
    return 0;
}

void bus_link_apply(struct tg_bus *bus)
{
    struct bus_link *link = &bus->link;
    int fd, wanted;

    uv_mutex_lock(&link->lock);
    fd = link->fd_next;
    link->fd_next = -1;
    wanted = link->wanted;
    uv_mutex_unlock(&link->lock);
    if (fd >= 0 && poll_new(bus, fd) != 0) {
        return; /* unread pings make the library try again within PING_MS x PINGS_OUT */
    }
    if (link->poll == NULL) {
        return;
    }
    if (wanted == 0) {
        uv_poll_stop(link->poll);
    } else {
        uv_poll_start(link->poll, wanted, on_socket);
    }
}

static void want(struct tg_bus *bus, int event, bool add)
{
    struct bus_link *link = &bus->link;
    bool direct;

    uv_mutex_lock(&link->lock);
    link->wanted = add ? link->wanted | event : link->wanted & ~event;
    direct = link->fd_next < 0 && on_loop(link);
    uv_mutex_unlock(&link->lock);
    if (direct) {
        bus_link_apply(bus);
    } else {
        uv_async_send(&link->wake);
    }
}

static natsStatus hook_attach(void **user_data, void *loop, natsConnection *connection,
                              natsSock socket)
{
    struct tg_bus *bus = loop;
    struct bus_link *link = &bus->link;
    int fd = fcntl(socket, F_DUPFD_CLOEXEC, 3);

    if (fd < 0) {
        return NATS_IO_ERROR;
    }
    uv_mutex_lock(&link->lock);
    if (link->fd_next >= 0) {
        close(link->fd_next);
    }
    link->fd_next = fd;
    link->wanted = UV_READABLE;
    link->connection = connection;
    link->denied = false; /* another connection, perhaps other rights: what lacks is said again */
    uv_mutex_unlock(&link->lock);
    atomic_store(&link->attached, true);
    *user_data = bus;
    uv_async_send(&link->wake);
    return NATS_OK;
}

static natsStatus hook_read(void *user_data, bool add)
{
    struct tg_bus *bus = user_data;

    if (!add) {
        atomic_store(&bus->link.attached, false);
    }
    want(bus, UV_READABLE, add);
    return NATS_OK;
}

static natsStatus hook_write(void *user_data, bool add)
{
    want(user_data, UV_WRITABLE, add);
    return NATS_OK;
}

static natsStatus hook_detach(void *user_data)
{
    struct tg_bus *bus = user_data;

    atomic_store(&bus->link.attached, false);
    want(bus, UV_READABLE | UV_WRITABLE, false);
    return NATS_OK;
}

static void on_connected(natsConnection *connection, void *context)
{
    struct tg_bus *bus = context;

    (void)connection;
    atomic_store(&bus->link.announced, true);
    uv_async_send(&bus->link.wake);
}

static void on_disconnected(natsConnection *connection, void *context)
{
    struct tg_bus *bus = context;

    (void)connection;
    atomic_store(&bus->link.announced, false);
    uv_async_send(&bus->link.wake);
}

static void on_closed(natsConnection *connection, void *context)
{
    struct tg_bus *bus = context;

    (void)connection;
    atomic_store(&bus->link.announced, false);
    uv_mutex_lock(&bus->link.lock);
    atomic_store(&bus->link.closed, true);
    uv_async_send(&bus->link.wake);
    uv_mutex_unlock(&bus->link.lock);
}

/* An answer that NATS refuses came too late, or across a reload of its configuration, which forgets
 * who was asked: it is lost like any other, and no right is missing. */
static bool lost_an_answer(const char *text)
{
    return text != NULL && strstr(text, "Publish to \"_INBOX.") != NULL;
}

static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus error,
                     void *context)
{
    struct tg_bus *bus = context;
    const char *text = NULL;

    (void)subscription;
    if (error == NATS_SLOW_CONSUMER) {
        atomic_fetch_add(&bus->link.slow, 1);
        uv_async_send(&bus->link.wake);
    } else if (error == NATS_NOT_PERMITTED) {
        (void)natsConnection_GetLastError(connection, &text);
        if (lost_an_answer(text)) {
            return;
        }
        uv_mutex_lock(&bus->link.lock);
        bus->link.denied = true;
        snprintf(bus->link.fault, sizeof(bus->link.fault), "NATS refuses the identity %s: %s",
                 bus->identity, text != NULL ? text : "no permission");
        uv_mutex_unlock(&bus->link.lock);
        uv_async_send(&bus->link.wake);
    }
}

bool bus_link_denied(struct tg_bus *bus, char out_fault[BUS_FAULT_BYTES])
{
    bool denied;

    uv_mutex_lock(&bus->link.lock);
    denied = bus->link.denied;
    if (denied && out_fault != NULL) {
        memcpy(out_fault, bus->link.fault, BUS_FAULT_BYTES);
    }
    uv_mutex_unlock(&bus->link.lock);
    return denied;
}

void bus_link_answer(natsConnection *connection, natsSubscription *subscription,
                     natsMsg *take_message, void *context)
{
    struct tg_bus *bus = context;
    struct bus_link *link = &bus->link;
    bool full;

    (void)connection;
    (void)subscription;
    uv_mutex_lock(&link->lock);
    full = link->answer_count == TG_MAX_BUS_PENDING;
    if (!full) {
        size_t last = (link->answer_first + link->answer_count++) % TG_MAX_BUS_PENDING;
        link->answers[last] = take_message;
    }
    uv_mutex_unlock(&link->lock);
    if (full) {
        natsMsg_Destroy(take_message);
        atomic_fetch_add(&link->slow, 1);
    }
    uv_async_send(&link->wake);
}

void bus_link_delivered(void *context)
{
    struct tg_bus *bus = context;

    /* Under the lock: once the loop sees 0 it frees the bus, and must not before this thread is
     * through. */
    uv_mutex_lock(&bus->link.lock);
    atomic_fetch_sub(&bus->link.deliveries, 1);
    uv_async_send(&bus->link.wake);
    uv_mutex_unlock(&bus->link.lock);
}

natsMsg *bus_link_next_answer(struct bus_link *link)
{
    natsMsg *message = NULL;

    uv_mutex_lock(&link->lock);
    if (link->answer_count > 0) {
        message = link->answers[link->answer_first];
        link->answer_first = (link->answer_first + 1) % TG_MAX_BUS_PENDING;
        link->answer_count--;
    }
    uv_mutex_unlock(&link->lock);
    return message;
}

static void on_wake(uv_async_t *wake)
{
    struct tg_bus *bus = wake->data;

    bus_link_apply(bus);
    bus_look(bus);
    if (!bus->freeing) {
        bus_drain(bus);
    }
}

int bus_link_open(struct tg_bus *bus, uv_loop_t *loop)
{
    struct bus_link *link = &bus->link;
    int error;

    link->loop = loop;
    link->loop_thread = uv_thread_self();
    link->fd_next = -1;
    link->answers = calloc(TG_MAX_BUS_PENDING, sizeof(natsMsg *));
    if (link->answers == NULL) {
        return -ENOMEM;
    }
    error = uv_mutex_init(&link->lock);
    if (error != 0) {
        free(link->answers);
        return error;
    }
    error = uv_async_init(loop, &link->wake, on_wake);
    if (error != 0) {
        uv_mutex_destroy(&link->lock);
        free(link->answers);
        return error;
    }
    link->wake.data = bus;
    return 0;
}

/* The library frees the signature. Its threads may call this: the key stays while a connection
 * does. */
static natsStatus sign_nonce(char **out_error, unsigned char **out_signature, int *out_length,
                             const char *nonce, void *context)
{
    const struct tg_bus *bus = context;
    unsigned char *signature = malloc(crypto_sign_BYTES);

    (void)out_error;
    if (signature == NULL) {
        return NATS_NO_MEMORY;
    }
    crypto_sign_detached(signature, NULL, (const unsigned char *)nonce, strlen(nonce),
                         bus->nkey.secret);
    *out_signature = signature;
    *out_length = crypto_sign_BYTES;
    return NATS_OK;
}

/* The file is read at every attempt: a rotated key needs no restart. */
static natsStatus show_identity(struct tg_bus *bus, natsOptions *options)
{
    char name[sizeof(bus->identity) + 8], text[TG_NKEY_PUBLIC_LENGTH + 1];

    if (bus->keys == NULL) {
        return NATS_OK;
    }
    snprintf(name, sizeof(name), "nats-%s", bus->identity);
    if (tg_keys_nkey(bus->keys, name, &bus->nkey) != 0) {
        snprintf(bus->fault, sizeof(bus->fault), "the key file %s is missing or damaged", name);
        return NATS_INVALID_ARG;
    }
    tg_nkey_public_encode(bus->nkey.public_key, text);
    return natsOptions_SetNKey(options, text, sign_nonce, bus);
}

/* tls://: the certificate must be signed by an authority we trust, for the name we dial. */
static natsStatus secure(struct tg_bus *bus, natsOptions *options)
{
    char host[128];
    const char *at = strrchr(bus->url, '@');
    const char *start = at != NULL ? at + 1 : bus->url + sizeof("tls://") - 1;
    natsStatus s;

    if (strncmp(bus->url, "tls://", sizeof("tls://") - 1) != 0) {
        return NATS_OK;
    }
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(start, ":/,"), start);
    s = natsOptions_SetSecure(options, true);
    if (s == NATS_OK && bus->ca != NULL) {
        s = natsOptions_LoadCATrustedCertificates(options, bus->ca);
    }
    if (s != NATS_OK) {
        snprintf(bus->fault, sizeof(bus->fault), "the file of authorities %s is no PEM file",
                 bus->ca != NULL ? bus->ca : "of the system");
        return NATS_INVALID_ARG;
    }
    return natsOptions_SetExpectedHostname(options,
                                           bus->server_name != NULL ? bus->server_name : host);
}

int bus_link_options(struct tg_bus *bus, natsOptions *options, bool patient)
{
    char name[sizeof(bus->daemon) + sizeof(bus->instance) + 16];
    natsStatus s = natsOptions_SetURL(options, bus->url);

    snprintf(name, sizeof(name), "tidegate-%s %s", bus->daemon, bus->instance);
    s = s != NATS_OK ? s : natsOptions_SetName(options, name);
    s = s != NATS_OK ? s : show_identity(bus, options);
    s = s != NATS_OK ? s : secure(bus, options);
    s = s != NATS_OK ? s : natsOptions_SetSendAsap(options, true);
    s = s != NATS_OK ? s : natsOptions_SetMaxReconnect(options, -1);
    s = s != NATS_OK ? s : natsOptions_SetReconnectWait(options, RECONNECT_WAIT_MS);
    s = s != NATS_OK
            ? s
            : natsOptions_SetReconnectJitter(options, RECONNECT_JITTER_MS, RECONNECT_JITTER_MS);
    s = s != NATS_OK ? s : natsOptions_SetReconnectBufSize(options, 1);
    s = s != NATS_OK ? s : natsOptions_SetPingInterval(options, PING_MS);
    s = s != NATS_OK ? s : natsOptions_SetMaxPingsOut(options, PINGS_OUT);
    s = s != NATS_OK ? s : natsOptions_SetTimeout(options, CONNECT_MS);
    s = s != NATS_OK ? s : natsOptions_SetIOBufSize(options, READ_BYTES);
    s = s != NATS_OK ? s : natsOptions_SetMaxPendingMsgs(options, TG_MAX_BUS_PENDING);
    s = s != NATS_OK || !patient
            ? s
            : natsOptions_SetRetryOnFailedConnect(options, true, on_connected, bus);
    s = s != NATS_OK ? s : natsOptions_SetReconnectedCB(options, on_connected, bus);
    s = s != NATS_OK ? s : natsOptions_SetDisconnectedCB(options, on_disconnected, bus);
    s = s != NATS_OK ? s : natsOptions_SetClosedCB(options, on_closed, bus);
    s = s != NATS_OK ? s : natsOptions_SetErrorHandler(options, on_error, bus);
    s = s != NATS_OK ? s
                     : natsOptions_SetEventLoop(options, bus, hook_attach, hook_read, hook_write,
                                                hook_detach);
    return s == NATS_OK ? 0 : TG_ERR_SETTING;
}
