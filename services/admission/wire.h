/* SPDX-License-Identifier: Apache-2.0
 * Messages of the bus <-> events and actions of the core. Everything a peer says is checked here.
 */
#ifndef ADMISSION_WIRE_H
#define ADMISSION_WIRE_H

#include "services/admission/core.h"

#include "tidegate/v1/admission.pb-c.h"
#include "tidegate/v1/queue.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"

/* Each fills the event (for a request all but the view) and returns NONE, or why it is refused.
 * Text and bytes in the event are borrowed from the message. `sale` is the one of the subject: a
 * body that names another is refused. */
enum tg_reason admission_wire_ask(const char *sale, const Tidegate__V1__PassRequest *request,
                                  struct admission_event *out_event);
enum tg_reason admission_wire_board(const char *sale, const Tidegate__V1__Board *board,
                                    struct admission_event *out_event);
enum tg_reason admission_wire_peer(const char *sale, const Tidegate__V1__Pace *pace,
                                   struct admission_event *out_event);
enum tg_reason admission_wire_stock(const char *sale, const Tidegate__V1__Stock *stock,
                                    struct admission_event *out_event);

enum tg_reason admission_wire_load(const char *sale, const Tidegate__V1__Load *load,
                                   enum admission_daemon daemon, struct admission_event *out_event);
enum tg_reason admission_wire_signal(const char *sale, const Tidegate__V1__Signal *signal,
                                     struct admission_event *out_event);

enum { ADMISSION_DETAIL_BYTES = 128 };

/* The messages borrow their texts from the arguments. */
void admission_wire_answer(const struct admission_answer *answer,
                           Tidegate__V1__PassReply *out_reply);
void admission_wire_pace(const char *sale, const char *instance, const struct admission_pace *pace,
                         char detail[ADMISSION_DETAIL_BYTES], Tidegate__V1__Pace *out_pace);

#endif
