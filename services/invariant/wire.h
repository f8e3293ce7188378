/* SPDX-License-Identifier: Apache-2.0
 * Between the stores' replies and the checker's core: everything read is checked here. What cannot
 * be read is told as such (garbled, not readable), never guessed. No I/O. */
#ifndef INVARIANT_WIRE_H
#define INVARIANT_WIRE_H

#include "lib/pure/sale.h"
#include "services/invariant/core_check.h"
#include "services/invariant/core_log.h"
#include "tidegate/v1/ledger.pb-c.h"

#include <hiredis/hiredis.h>

enum { INVARIANT_TAG_KEY_BYTES = 16 };

/* What a reply of Redis is: usable, an error that says a key is of another type, or any other error
 * (unknown). */
enum invariant_reply { INVARIANT_REPLY_FINE, INVARIANT_REPLY_WRONG_TYPE, INVARIANT_REPLY_UNUSABLE };
enum invariant_reply invariant_wire_reply(int status, const redisReply *reply);

/* INFO -> server. 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int invariant_wire_server(const redisReply *reply,
                                        struct invariant_server *out_server);

enum { INVARIANT_GATE_PAUSES_MAX = 64 };
/* The pauses told by lua/look.lua, those with an id that a command could have. Returns how many. */
uint32_t invariant_wire_pauses(const redisReply *reply, uint32_t item_count,
                               struct tg_pause out_pauses[INVARIANT_GATE_PAUSES_MAX]);

/* lua/look.lua -> look. `epoch` is the one asked for: a ctl that names another one is not readable.
 * 0, or TG_ERR_MALFORMED when the reply has another shape. */
TG_MUST_CHECK int invariant_wire_look(const redisReply *reply, uint64_t epoch, uint32_t item_count,
                                      struct invariant_look *out_look);

/* "res_..." -> 16 bytes. 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int invariant_wire_id(const char *text, size_t length,
                                    uint8_t out_id[INVARIANT_ID_BYTES]);

/* One field and value of held, settled or released -> entry. A record that cannot be read gives an
 * entry marked GARBLED; so does a field that is no reservation id (its id is then a digest of the
 * field). `place` is the hash it was found in. */
void invariant_wire_hold(const redisReply *field, const redisReply *value,
                         enum invariant_place place, const uint8_t key[INVARIANT_TAG_KEY_BYTES],
                         struct invariant_entry *out_entry);

/* One member of unacked -> entry without a record. */
void invariant_wire_unacked(const redisReply *member, struct invariant_entry *out_entry);

/* One row of buyers, "SLOT:RESERVATION,SLOT:RESERVATION" or "" -> an entry per reservation it
 * names; one entry marked GARBLED where it cannot be read. Returns how many. */
uint32_t invariant_wire_buyer(const redisReply *field, const redisReply *value,
                              const uint8_t key[INVARIANT_TAG_KEY_BYTES],
                              struct invariant_entry out_entries[TG_MAX_BUYER_LIMIT]);

uint64_t invariant_wire_user_tag(const uint8_t key[INVARIANT_TAG_KEY_BYTES], const uint8_t *user,
                                 size_t length);

/* One entry of the log's stream. The text fields borrow the reply. */
struct invariant_wire_log {
    struct invariant_log_entry entry;
    const char *kind, *reservation, *source;
    int64_t at_ms;
    uint32_t unit_count;
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
};
/* 0, or TG_ERR_MALFORMED when the id is not SEQUENCE-0. A readable id with unreadable fields gives
 * entry.readable false. */
TG_MUST_CHECK int invariant_wire_log(const redisReply *reply, struct invariant_wire_log *out_log);

/* "item:unit,unit;item:unit" -> units. 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int invariant_wire_units(const char *text, size_t length,
                                       struct tg_unit_ref *out_units, uint32_t *out_count);

/* Fills a check result; `detail` is borrowed. */
void invariant_wire_result(const struct invariant_judgement *judgement, char *detail, int64_t at_ms,
                           uint32_t round_ms, Tidegate__V1__CheckResult *out_result);

#endif
