/* SPDX-License-Identifier: Apache-2.0
 * Replies of Redis as the checker reads them, from the bytes of the protocol on: what cannot be
 * read is told as such, and what is read is what was there. */
#include "tests/fuzz/fuzz.h"

#include "lib/io/kv.h"
#include "services/invariant/wire.h"

#define EPOCH UINT64_C(3)

static const uint8_t tag_key[INVARIANT_TAG_KEY_BYTES] = "tags of tests";

/* The first reply of the bytes, or NULL. */
static redisReply *parse(const uint8_t *bytes, size_t size)
{
    void *reply = NULL;
    redisReader *reader = redisReaderCreate();
    HOLDS(reader != NULL);
    tg_kv_bound_reader(reader); /* as every connection has it */
    if (redisReaderFeed(reader, (const char *)bytes, size) != REDIS_OK ||
        redisReaderGetReply(reader, &reply) != REDIS_OK) {
        reply = NULL;
    }
    redisReaderFree(reader);
    return reply;
}

static bool is_text(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
}

static void check_look(const redisReply *reply, uint32_t item_count)
{
    static struct invariant_look look;
    if (invariant_wire_look(reply, EPOCH, item_count, &look) != 0) {
        return;
    }
    HOLDS(reply->type == REDIS_REPLY_ARRAY && look.gate_ms >= 0);
    HOLDS(look.present || (!look.readable && !look.armed)); /* not readable: only present counts */
    if (look.readable) {
        HOLDS(strcmp(reply->element[3]->str, "3") == 0); /* of the epoch asked for */
        HOLDS(look.item_count <= TG_MAX_ITEMS_PER_SALE && look.sequence <= INT64_MAX);
        for (uint32_t i = 0; i < look.item_count && i < item_count; i++) {
            HOLDS(look.items[i].stock <= INT64_MAX && look.items[i].initial <= INT64_MAX);
        }
    }
}

static void check_entry(const redisReply *field, const redisReply *value)
{
    static const enum invariant_place places[] = {INVARIANT_HELD, INVARIANT_SETTLED,
                                                  INVARIANT_RELEASED};
    struct tg_hold_record record;
    uint8_t id[INVARIANT_ID_BYTES];
    bool named = is_text(field) && invariant_wire_id(field->str, field->len, id) == 0;
    bool readable =
        named && is_text(value) && tg_hold_record_parse(value->str, value->len, &record) == 0;
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct invariant_entry entry;
        invariant_wire_hold(field, value, places[i], tag_key, &entry);
        HOLDS((entry.places & ~(uint32_t)INVARIANT_GARBLED) == places[i]);
        HOLDS(!named || memcmp(entry.id, id, sizeof(id)) == 0);
        if (readable) {
            HOLDS(entry.unit_count == record.unit_count && entry.places == places[i]);
        } else if (places[i] != INVARIANT_RELEASED || !named) {
            HOLDS((entry.places & INVARIANT_GARBLED) != 0 && entry.unit_count == 0);
        }
    }
    struct invariant_entry unacked;
    invariant_wire_unacked(field, &unacked);
    HOLDS(((unacked.places & INVARIANT_GARBLED) == 0) == named && unacked.unit_count == 0);
}

static void check_log(const redisReply *reply)
{
    static struct invariant_wire_log log;
    if (invariant_wire_log(reply, &log) != 0) {
        return;
    }
    HOLDS(log.entry.sequence <= INT64_MAX && log.kind != NULL && log.source != NULL);
    HOLDS(log.unit_count <= TG_MAX_UNITS_PER_HOLD);
    if (log.entry.readable) {
        int64_t change = 0, units = (int64_t)log.unit_count;
        HOLDS(invariant_log_change(log.kind, strlen(log.kind), log.unit_count, &change) == 0);
        HOLDS(log.entry.stock_after >= 0 && log.at_ms >= 0 && log.entry.change == change);
        HOLDS(change == 0 || change == units || change == -units);
    } else {
        HOLDS(log.kind[0] == '\0' && log.reservation[0] == '\0');
    }
}

static void check_server(const redisReply *reply)
{
    struct invariant_server server;
    if (invariant_wire_server(reply, &server) == 0) {
        HOLDS(is_text(reply));
        HOLDS(strnlen(server.run_id, sizeof(server.run_id)) < sizeof(server.run_id));
        HOLDS(strnlen(server.replication_id, sizeof(server.replication_id)) <
              sizeof(server.replication_id));
        HOLDS(!server.primary || strstr(reply->str, "role:master") != NULL);
    }
}

static void check_units(const redisReply *reply)
{
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    uint32_t count = 0;
    if (is_text(reply) && invariant_wire_units(reply->str, reply->len, units, &count) == 0) {
        HOLDS(count >= 1 && count <= TG_MAX_UNITS_PER_HOLD);
    }
}

static void check(const redisReply *reply, uint32_t item_count)
{
    enum invariant_reply kind = invariant_wire_reply(0, reply);
    HOLDS(invariant_wire_reply(-1, reply) == INVARIANT_REPLY_UNUSABLE);
    HOLDS((kind == INVARIANT_REPLY_FINE) == (reply->type != REDIS_REPLY_ERROR));
    if (kind != INVARIANT_REPLY_FINE) {
        return;
    }
    check_look(reply, item_count);
    check_server(reply);
    check_units(reply);
    check_log(reply);
    if (reply->type == REDIS_REPLY_ARRAY) {
        for (size_t i = 0; i + 1 < reply->elements; i += 2) {
            check_entry(reply->element[i], reply->element[i + 1]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 1) {
        return 0;
    }
    redisReply *reply = parse(bytes + 1, size - 1);
    if (reply != NULL) {
        check(reply, bytes[0] % 4U);
        freeReplyObject(reply);
    }
    return 0;
}
