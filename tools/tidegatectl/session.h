/* SPDX-License-Identifier: Apache-2.0
 * One connection to the bus for the life of one command. Unlike a daemon, a command may wait: it
 * runs the loop until what it waits for is there or its time is over. */
#ifndef TG_CTL_SESSION_H
#define TG_CTL_SESSION_H

#include "lib/io/bus.h"
#include "tidegate/v1/ledger.pb-c.h"
#include "tools/tidegatectl/ctl.h"

struct ctl_session {
    uv_loop_t loop;
    uv_timer_t timer;
    struct tg_bus *bus;
    bool due;
    char server[160]; /* the URL without credentials, for sentences */
};

/* Connects within 2 s. CTL_DONE, or CTL_UNREACHABLE after a sentence on stderr (unless `quiet`);
 * then there is nothing to close. */
enum ctl_exit ctl_session_open(const struct ctl_options *options, bool quiet,
                               struct ctl_session *out_session);
void ctl_session_close(struct ctl_session *session);

/* Runs the loop until done(context) or for `ms`. Returns the last done(context). */
bool ctl_session_until(struct ctl_session *session, bool (*done)(const void *context),
                       const void *context, int64_t ms);

/* One request and its answer. 0 and *out_reply (protobuf_c_message_free_unpacked), or the negative
 * error of the bus. */
TG_MUST_CHECK int ctl_session_ask(struct ctl_session *session, enum tg_message message,
                                  const char *sale, const ProtobufCMessage *body,
                                  ProtobufCMessage **out_reply);

/* What the ledger knows: of one sale, or (NULL) the page of sales after `after`. CTL_DONE and
 * *out_reply (tidegate__v1__sales_reply__free_unpacked), or CTL_UNREACHABLE after a sentence. */
enum ctl_exit ctl_session_sales(struct ctl_session *session, const char *sale, const char *after,
                                Tidegate__V1__SalesReply **out_reply);

/* A sentence for an error of the bus when `who` was asked. */
void ctl_session_explain(const struct ctl_session *session, const char *who, int error);

#endif
