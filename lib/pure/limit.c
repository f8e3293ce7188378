/* SPDX-License-Identifier: Apache-2.0
 * Relations between limits: a row changed without its neighbours does not compile. */
#include "lib/pure/limit.h"

#include "lib/pure/hold_record.h"
#include "lib/pure/identity.h"
#include "lib/pure/ticket.h"

#include <assert.h>

/* A holder's bytes are a user id, and its length is one byte. */
static_assert(TG_MAX_USER_BYTES == sizeof(((struct tg_holder *)0)->bytes),
              "holder carries the longest user");
static_assert(TG_MAX_USER_BYTES <= 255 && TG_MAX_SALE_NAME_BYTES <= 255,
              "lengths in a ticket are one byte");

/* version, key id, nonce, tag around: sale length and name, generation, kind, user length and user,
 * arrived, index, early, lane */
static_assert(TG_BASE64URL_LENGTH(2 + TG_TICKET_NONCE_BYTES + 16 + 1 + TG_MAX_SALE_NAME_BYTES + 8 +
                                  2 + TG_MAX_USER_BYTES + 8 + 8 + 2) <= TG_MAX_TICKET_BYTES,
              "the longest ticket fits");

/* header 56; members and numbers 256; sale twice; user with every byte escaped; two dots and a
 * signature */
static_assert(TG_BASE64URL_LENGTH(56) +
                      TG_BASE64URL_LENGTH(256 + 2 * TG_MAX_SALE_NAME_BYTES +
                                          2 * TG_MAX_USER_BYTES) +
                      TG_BASE64URL_LENGTH(64) + 2 <=
                  TG_MAX_PASS_BYTES,
              "the longest pass fits");

/* place, digest, window, deadline; "31:999999;" and "63," per unit; user */
static_assert(2 * 22 + 20 + 19 + 6 + TG_MAX_UNITS_PER_HOLD * (10 + 3) + TG_MAX_USER_BYTES + 1 <=
                  TG_HOLD_RECORD_BYTES,
              "the longest hold record fits");
static_assert(TG_MAX_ITEMS_PER_SALE <= 100 && TG_MAX_UNITS_PER_ITEM <= 1000000 &&
                  TG_MAX_BUYER_LIMIT <= 100,
              "digits counted for a hold record");
static_assert(TG_MAX_BUYER_LIMIT <= TG_MAX_UNITS_PER_HOLD, "a buyer's whole limit fits one hold");

/* "compensate." and a payment; a sale's own: name, generation, kind, control sequence */
static_assert(11 + TG_MAX_PAYMENT_ID_BYTES <= TG_MAX_EVENT_ID_BYTES &&
                  TG_MAX_SALE_NAME_BYTES + 19 + 8 + 19 + 3 <= TG_MAX_EVENT_ID_BYTES,
              "the longest name of an event fits");

/* Pages fit a bus message: an order or verdict is about 50 bytes, a lapsed hold or a snapshot row
 * carries user and units. */
static_assert(TG_MAX_PAGE * 140 <= TG_MAX_BUS_BODY_BYTES, "a page fits a body");
static_assert(TG_MAX_BUS_BODY_BYTES < 16 * 1024,
              "bodies stay below the server's max_payload with room for headers");
static_assert(TG_MAX_HTTP_BODY_BYTES < TG_MAX_BUS_BODY_BYTES,
              "what HTTP takes in can travel on the bus");

/* A ticket or a pass in the target or the head. */
static_assert(TG_MAX_TICKET_BYTES + TG_MAX_SALE_NAME_BYTES + 64 <= TG_MAX_HTTP_URI_BYTES,
              "a ticket fits an address");
static_assert(TG_MAX_PASS_BYTES + TG_MAX_TICKET_BYTES + TG_MAX_HTTP_URI_BYTES <=
                  TG_MAX_HTTP_HEAD_BYTES,
              "pass, ticket and address fit a head");

/* Times. */
static_assert(TG_MAX_GATE_COMMAND_MS < TG_MAX_CALL_MS,
              "the gate's silence is known before the caller gives up");
static_assert(TG_MAX_RECORD_BATCH_MS * 10 <= TG_MAX_GATE_COMMAND_MS,
              "waiting for a batch is small in a call");
static_assert(TG_MAX_CALL_MS <= TG_MAX_STATE_STALE_MS,
              "a call does not outlive the state it rests on");
static_assert(TG_MAX_CLOCK_SKEW_MS < TG_MAX_PASS_WINDOW_MS, "skew is small in a pass window");
static_assert(TG_MAX_COMMAND_LIFE_MS <= TG_MAX_PASS_WINDOW_MS, "commands die early");
static_assert(TG_MAX_GATE_IN_FLIGHT >= 64, "Redis needs that many to be busy");
static_assert(TG_MAX_BUS_CALLS <= TG_MAX_BUS_PENDING, "all replies outstanding may arrive at once");
