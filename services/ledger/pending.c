/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ledger/pending.h"

#include "lib/io/now.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ledger_pendings_init(struct ledger_pendings *pendings)
{
    pendings->rows = calloc(LEDGER_PENDING_MAX, sizeof *pendings->rows);
    if (pendings->rows == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < LEDGER_PENDING_MAX; i++) {
        pendings->rows[i].next_free = i + 1;
    }
    pendings->first_free = 0;
    pendings->used = 0;
    return 0;
}

static void release(struct ledger_pendings *pendings, struct ledger_pending *pending)
{
    free(pending->judged);
    pending->judged = NULL;
    pending->incoming = NULL;
    pending->next_free = pendings->first_free;
    pendings->first_free = (uint32_t)(pending - pendings->rows);
    pendings->used--;
}

void ledger_pendings_free(struct ledger_pendings *pendings)
{
    for (uint32_t i = 0; pendings->rows != NULL && i < LEDGER_PENDING_MAX; i++) {
        if (pendings->rows[i].incoming != NULL) {
            tg_bus_release(pendings->rows[i].incoming);
            free(pendings->rows[i].judged);
        }
    }
    free(pendings->rows);
    pendings->rows = NULL;
}

struct ledger_pending *ledger_pending_new(struct ledger_pendings *pendings,
                                          struct tg_bus_incoming *incoming, uint64_t *out_token)
{
    const uint32_t slot = pendings->first_free;
    if (slot == LEDGER_PENDING_MAX) {
        return NULL;
    }
    struct ledger_pending *pending = &pendings->rows[slot];
    const uint32_t serial = pending->serial + 1;
    pendings->first_free = pending->next_free;
    pendings->used++;
    memset(pending, 0, sizeof *pending);
    pending->incoming = incoming;
    pending->serial = serial;
    pending->started_us = tg_now_us();
    *out_token = (uint64_t)serial << 32 | (slot + 1);
    return pending;
}

struct ledger_pending *ledger_pending_find(struct ledger_pendings *pendings, uint64_t token)
{
    const uint32_t slot = (uint32_t)token - 1;
    if (slot >= LEDGER_PENDING_MAX) {
        return NULL;
    }
    struct ledger_pending *pending = &pendings->rows[slot];
    return pending->incoming != NULL && pending->serial == token >> 32 ? pending : NULL;
}

void ledger_pending_reply(struct ledger_pendings *pendings, struct ledger_pending *pending,
                          const ProtobufCMessage *body)
{
    struct tg_bus_incoming *incoming = pending->incoming;
    release(pendings, pending);
    tg_bus_reply(incoming, body);
}

void ledger_pending_reply_reason(struct ledger_pendings *pendings, struct ledger_pending *pending,
                                 enum tg_reason reason)
{
    struct tg_bus_incoming *incoming = pending->incoming;
    release(pendings, pending);
    tg_bus_reply_reason(incoming, tg_reason_code(reason));
}

void ledger_pending_refuse(struct ledger_pendings *pendings, struct ledger_pending *pending,
                           int code, const char *text)
{
    struct tg_bus_incoming *incoming = pending->incoming;
    release(pendings, pending);
    tg_bus_reply_error(incoming, code, text);
}
