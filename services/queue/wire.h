/* SPDX-License-Identifier: Apache-2.0
 * Messages of the bus <-> events and actions of the core. Everything a peer says is checked here;
 * the core never sees a number or a name that is out of its bounds. */
#ifndef QUEUE_WIRE_H
#define QUEUE_WIRE_H

#include "services/queue/core.h"

#include "tidegate/v1/admission.pb-c.h"
#include "tidegate/v1/queue.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"

/* Each fills the event and returns NONE, or MALFORMED and leaves it unusable. Text in the event is
 * borrowed from the message. `sale` is the one of the subject: a body that names another is
 * refused. */
enum tg_reason queue_wire_lease(const char *sale, const Tidegate__V1__LeaseRequest *request,
                                struct queue_event *out_event);
enum tg_reason queue_wire_presence(const char *sale, const Tidegate__V1__Presence *presence,
                                   struct queue_event *out_event);
/* *out_count: how many entrants lie in request->entrants. */
enum tg_reason queue_wire_roster(const char *sale, const Tidegate__V1__RosterRequest *request,
                                 uint32_t *out_count);
enum tg_reason queue_wire_peer(const char *sale, const Tidegate__V1__Board *board,
                               struct queue_event *out_event);
enum tg_reason queue_wire_pace(const char *sale, const Tidegate__V1__Pace *pace,
                               struct queue_event *out_event);
enum tg_reason queue_wire_stock(const char *sale, const Tidegate__V1__Stock *stock,
                                struct queue_event *out_event);

/* The messages borrow `sale` and `instance`. */
void queue_wire_grant(const struct queue_grant *grant, Tidegate__V1__LeaseReply *out_reply);
void queue_wire_board(const char *sale, const char *instance, const struct queue_board *board,
                      struct tg_wall now, Tidegate__V1__Board *out_board);

#endif
