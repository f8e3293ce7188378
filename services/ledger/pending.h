/* SPDX-License-Identifier: Apache-2.0
 * Requests that wait for PostgreSQL: a fixed table, looked up by token. A token never comes back to
 * another request. */
#ifndef LEDGER_PENDING_H
#define LEDGER_PENDING_H

#include "lib/io/bus.h"
#include "services/ledger/store.h"

enum { LEDGER_PENDING_MAX = 16384 };

struct ledger_pending {
    struct tg_bus_incoming *incoming; /* NULL: the place is free */
    uint32_t serial;
    uint32_t next_free;
    uint64_t started_us;
    struct ledger_id id;             /* of the reservation, where there is one */
    enum ledger_verb verb;           /* of a request on one reservation */
    unsigned attempts;               /* of an append of the log */
    enum ledger_draw_step drawing;   /* of a draw */
    uint32_t limit;                  /* of a page that was asked for */
    struct ledger_judgement *judged; /* heap: of a command, while its state is fetched */
};

struct ledger_pendings {
    uint32_t used;
    uint32_t first_free;
    struct ledger_pending *rows; /* heap, LEDGER_PENDING_MAX */
};

TG_MUST_CHECK int ledger_pendings_init(struct ledger_pendings *pendings);
void ledger_pendings_free(struct ledger_pendings *pendings);
/* Takes the message over. NULL: the table is full, the message stays the caller's. out_token is
 * never 0. */
struct ledger_pending *ledger_pending_new(struct ledger_pendings *pendings,
                                          struct tg_bus_incoming *incoming, uint64_t *out_token);
/* NULL when it is gone. */
struct ledger_pending *ledger_pending_find(struct ledger_pendings *pendings, uint64_t token);
/* Answers with `body` and gives the place back. */
void ledger_pending_reply(struct ledger_pendings *pendings, struct ledger_pending *pending,
                          const ProtobufCMessage *body);
/* The same with nothing but a reason. */
void ledger_pending_reply_reason(struct ledger_pendings *pendings, struct ledger_pending *pending,
                                 enum tg_reason reason);
/* The same with an error of the service protocol. */
void ledger_pending_refuse(struct ledger_pendings *pendings, struct ledger_pending *pending,
                           int code, const char *text);

#endif
