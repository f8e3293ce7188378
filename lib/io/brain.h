/* SPDX-License-Identifier: Apache-2.0
 * The shell of a single brain: of several processes one decides for every sale, by numbered terms
 * (lib/pure/term.h); the others stand by. Keeps the term, knows the sales, ticks and feeds the
 * cores; the service keeps one core per sale in a table of TG_MAX_SALES and finds it by the index
 * given here, which stays a sale's for the life of the process. Decides nothing. */
#ifndef TG_IO_BRAIN_H
#define TG_IO_BRAIN_H

#include "lib/io/app.h"
#include "lib/io/bus.h"
#include "lib/io/sales.h"
#include "lib/pure/reason.h"
#include "lib/pure/term.h"

#include <stddef.h>

/* What every tick tells a core. */
struct tg_brain_tick {
    const struct tg_sale *sale;
    enum tg_phase phase; /* at this instant */
    bool connected;
    uint32_t jitter_ms;
};

struct tg_brain_spec {
    const char *keys_folder; /* public control keys */
    const char *role_event;  /* name of the log line of a new role or term */
    /* A sale's first sight: before anything else is told of it. */
    void (*begin)(void *context, size_t index, const char *sale);
    /* Every 50 ms, and at once when the sale changed; not while draining. */
    void (*tick)(void *context, size_t index, const struct tg_brain_tick *tick);
    /* An event of tg_brains_take(), as the service's wire made it. */
    void (*feed)(void *context, size_t index, const void *event);
    void *context;
};

struct tg_brains {
    struct tg_app *app;
    struct tg_brain_spec spec;
    struct tg_sales *sales;
    struct tg_term term;
    bool draining; /* silent, so that a standby takes over */
    size_t begun;
};

/* Opens the sales, serves the subjects (each handler gets the spec's context), starts to tick. 0 or
 * a negative error. `brains` is zeroed and stays where it is. */
TG_MUST_CHECK int tg_brains_start(struct tg_brains *brains, struct tg_app *app,
                                  const struct tg_brain_spec *spec,
                                  const struct tg_bus_subject *subjects, size_t count);
/* As tg_app_spec's ready: connected, and the sales are known. */
bool tg_brains_ready(const struct tg_brains *brains, const char **out_why);
void tg_brains_stop(struct tg_brains *brains);

/* The index of a sale that has begun, or -1. */
int tg_brains_find(const struct tg_brains *brains, const char *sale);
const char *tg_brains_name(const struct tg_brains *brains, size_t index);

/* A publication that came in: counted if `fault` says so, fed if its sale is known, released. */
void tg_brains_take(struct tg_brains *brains, struct tg_bus_incoming *take_incoming,
                    enum tg_reason fault, const void *event);
/* Publishes; a failure is counted. */
void tg_brains_say(struct tg_brains *brains, enum tg_message message, size_t index,
                   const ProtobufCMessage *body);
/* Logs a role and term. */
void tg_brains_tell_role(const struct tg_brains *brains, enum tg_term_role role, uint64_t number);

#endif
