/* SPDX-License-Identifier: Apache-2.0 */
#include "services/invariant/store_gate.h"

#include "lib/pure/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

extern const char invariant_look_lua[];
extern const size_t invariant_look_lua_length;

int invariant_gate_server(struct tg_kv *kv, const struct invariant_answer *answer)
{
    const char *const argv[] = {"INFO", "server", "replication", "memory"};
    const size_t lengths[] = {4, 6, 11, 6};
    return tg_kv_command(kv, 4, argv, lengths, answer->on_reply, answer->context, answer->token);
}

/* The key's full name; its length is told by the return value. */
static size_t name_of(const struct invariant_gate *gate, enum tg_gate_key key, uint32_t item,
                      char out_name[TG_GATE_KEY_BYTES])
{
    return tg_gate_key_format(gate->sale, gate->shard, gate->epoch, key, item, out_name);
}

int invariant_gate_look(const struct invariant_gate *gate, uint32_t item_count,
                        const struct invariant_answer *answer)
{
    static const enum tg_gate_key fixed[] = {
        TG_GATE_KEY_CTL,     TG_GATE_KEY_HELD,     TG_GATE_KEY_UNACKED,
        TG_GATE_KEY_SETTLED, TG_GATE_KEY_RELEASED, TG_GATE_KEY_BUYERS,
        TG_GATE_KEY_USED,    TG_GATE_KEY_PAUSES,   TG_GATE_KEY_LOG};
    enum { FIXED = sizeof fixed / sizeof fixed[0] };
    char names[FIXED + TG_MAX_ITEMS_PER_SALE][TG_GATE_KEY_BYTES], key_count[16];
    const char *argv[3 + FIXED + TG_MAX_ITEMS_PER_SALE];
    size_t lengths[3 + FIXED + TG_MAX_ITEMS_PER_SALE];
    const int count = FIXED + (int)item_count;
    /* The whole text each time, twice a round: a credential that may only read a key may call
     * EVAL_RO, but not EVALSHA. */
    argv[0] = "EVAL_RO";
    lengths[0] = strlen(argv[0]);
    argv[1] = invariant_look_lua;
    lengths[1] = invariant_look_lua_length;
    argv[2] = key_count;
    lengths[2] = (size_t)snprintf(key_count, sizeof key_count, "%d", count);
    for (int i = 0; i < count; i++) {
        const enum tg_gate_key key = i < FIXED ? fixed[i] : TG_GATE_KEY_FREE;
        lengths[3 + i] = name_of(gate, key, i < FIXED ? 0 : (uint32_t)(i - FIXED), names[i]);
        argv[3 + i] = names[i];
    }
    return tg_kv_command(gate->kv, 3 + count, argv, lengths, answer->on_reply, answer->context,
                         answer->token);
}

int invariant_gate_scan(const struct invariant_gate *gate, enum tg_gate_key key, const char *cursor,
                        const struct invariant_answer *answer)
{
    char name[TG_GATE_KEY_BYTES], count[16];
    const size_t name_length = name_of(gate, key, 0, name);
    const int count_length = snprintf(count, sizeof count, "%d", INVARIANT_SCAN_COUNT);
    const char *const argv[] = {key == TG_GATE_KEY_UNACKED ? "SSCAN" : "HSCAN", name, cursor,
                                "COUNT", count};
    const size_t lengths[] = {5, name_length, strlen(cursor), 5, (size_t)count_length};
    return tg_kv_command(gate->kv, 5, argv, lengths, answer->on_reply, answer->context,
                         answer->token);
}

int invariant_gate_map(const struct invariant_gate *gate, uint32_t item,
                       const struct invariant_answer *answer)
{
    char name[TG_GATE_KEY_BYTES];
    const size_t name_length = name_of(gate, TG_GATE_KEY_FREE, item, name);
    const char *const argv[] = {"GET", name};
    const size_t lengths[] = {3, name_length};
    return tg_kv_command(gate->kv, 2, argv, lengths, answer->on_reply, answer->context,
                         answer->token);
}

int invariant_gate_log(const struct invariant_gate *gate, uint64_t after, uint32_t count,
                       const struct invariant_answer *answer)
{
    char name[TG_GATE_KEY_BYTES], from[32], count_text[16];
    const size_t name_length = name_of(gate, TG_GATE_KEY_LOG, 0, name);
    const int from_length = snprintf(from, sizeof from, "%" PRIu64 "-0", after + 1);
    const int count_length = snprintf(count_text, sizeof count_text, "%" PRIu32, count);
    const char *const argv[] = {"XRANGE", name, from, "+", "COUNT", count_text};
    const size_t lengths[] = {6, name_length, (size_t)from_length, 1, 5, (size_t)count_length};
    return tg_kv_command(gate->kv, 6, argv, lengths, answer->on_reply, answer->context,
                         answer->token);
}
