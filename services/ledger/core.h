/* SPDX-License-Identifier: Apache-2.0
 * What the ledger decides outside PostgreSQL, as pure data and decisions: which holds go into one
 * commit and when it is sent, what is obviously wrong before it costs a statement, what an order is
 * called. Verdicts are not decided here: SQL gives them. */
#ifndef LEDGER_CORE_H
#define LEDGER_CORE_H

#include "lib/pure/clock.h"
#include "lib/pure/hold_record.h"
#include "lib/pure/identity.h"
#include "lib/pure/limit.h"
#include "lib/pure/reason.h"
#include "lib/pure/sale.h"

#include <stdbool.h>
#include <stdint.h>

enum { LEDGER_ORDER_ID_LENGTH = TG_RESERVATION_ID_LENGTH, LEDGER_NO_BATCH = UINT32_MAX };

struct ledger_id {
    char text[TG_RESERVATION_ID_LENGTH + 1];
};

/* Same numbers as the wire's. */
enum ledger_state {
    LEDGER_STATE_NONE,
    LEDGER_PENDING,
    LEDGER_CONFIRMED,
    LEDGER_EXPIRED,
    LEDGER_CANCELLED
};

/* A won hold, checked: ids well-formed, 1..TG_MAX_UNITS_PER_HOLD distinct units with a slot each.
 */
struct ledger_hold {
    struct ledger_id id;
    uint64_t generation, epoch, window;
    uint8_t user[TG_MAX_USER_BYTES];
    uint8_t user_length;
    uint8_t place[TG_PLACE_BYTES];
    uint8_t digest[TG_DIGEST_BYTES];
    uint32_t unit_count;
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    uint32_t slots[TG_MAX_UNITS_PER_HOLD];
};

/* Holds of one sale on their way into one commit. Two requests for the same hold travel as one: the
 * second follows. */
enum ledger_batch_state { LEDGER_BATCH_FREE, LEDGER_BATCH_COLLECTING, LEDGER_BATCH_IN_FLIGHT };
enum { LEDGER_BATCH_INDEX = 1024 };
struct ledger_batch {
    enum ledger_batch_state state;
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    bool apart; /* takes no further holds */
    struct tg_mono opened;
    uint32_t count;
    struct ledger_hold holds[TG_MAX_RECORD_BATCH];
    uint64_t tokens[TG_MAX_RECORD_BATCH];
    uint32_t follower_count;
    uint32_t follower_holds[TG_MAX_RECORD_BATCH];
    uint64_t follower_tokens[TG_MAX_RECORD_BATCH];
    uint16_t index[LEDGER_BATCH_INDEX]; /* open addressing over ids: position + 1, 0 = empty */
};
_Static_assert(LEDGER_BATCH_INDEX >= 2 * TG_MAX_RECORD_BATCH,
               "the index of a full batch is at most half full");

struct ledger_batches {
    uint32_t count;
    uint32_t in_flight, in_flight_max;
    struct ledger_batch *batches; /* the caller's */
};

/* `count` batches of the caller, who keeps them; at most `in_flight_max` are in flight at once. */
void ledger_batches_init(struct ledger_batches *batches, struct ledger_batch *storage,
                         uint32_t count, uint32_t in_flight_max);

/* A hold that came in. `apart`: it will be refused (ledger_hold_judge), so it travels alone and
 * costs nobody else a repeat. */
struct ledger_arrival {
    const char *sale;
    const struct ledger_hold *hold;
    uint64_t token;
    bool apart;
};

/* Puts a hold into the batch its sale collects. False: no batch is free, nothing was kept. */
TG_MUST_CHECK bool ledger_batches_collect(struct ledger_batches *batches, struct tg_mono now,
                                          const struct ledger_arrival *arrival);

/* The batch to send now, or LEDGER_NO_BATCH; it counts as in flight from here on. Sent are full
 * ones, ones older than TG_MAX_RECORD_BATCH_MS, and any at all while nothing is in flight. Repeat
 * until there is none. */
uint32_t ledger_batches_next(struct ledger_batches *batches, struct tg_mono now);

/* The batch was answered: free again. */
void ledger_batches_done(struct ledger_batches *batches, uint32_t batch);

/* Holds not yet answered. */
uint32_t ledger_batches_waiting(const struct ledger_batches *batches);

/* What the constraints will refuse: a unit or an item that does not exist, a slot beyond the limit.
 * Judged only against the definition of the hold's own generation, else NONE. SQL has the last
 * word, and pauses the sale where that is due. */
enum tg_reason ledger_hold_judge(const struct tg_sale *sale, const struct ledger_hold *hold);

/* "ord_" and 26 characters: a function of the reservation id alone, so a confirm that is repeated
 * names the same order. */
void ledger_order_id(const char *reservation_id, char out_id[LEDGER_ORDER_ID_LENGTH + 1]);

#endif
