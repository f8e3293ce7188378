/* SPDX-License-Identifier: Apache-2.0
 * Calls of the gate's scripts over connections that break, to a Redis that restarts. */
#include "tests/sim/sim.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static struct reserve_keys keys[SIM_ITEMS][SIM_EPOCHS + 1];

void sim_keys_open(void)
{
    for (uint32_t items = 1; items <= SIM_ITEMS; items++) {
        for (uint64_t epoch = 1; epoch <= SIM_EPOCHS; epoch++) {
            reserve_keys_make("s", 0, epoch, items, &keys[items - 1][epoch]);
        }
    }
}

const struct reserve_keys *sim_keys(uint64_t epoch)
{
    assert(epoch >= 1 && epoch <= SIM_EPOCHS);
    return &keys[sim.ledger.item_count - 1][epoch];
}

int sim_id_of(const char *text, size_t length)
{
    uint8_t bytes[16];
    if (length != TG_RESERVATION_ID_LENGTH ||
        tg_base32_id_decode(text + 4, length - 4, bytes) != 0) {
        return -1;
    }
    const uint32_t at = (uint32_t)bytes[14] << 8 | bytes[15];
    return at < sim.id_count && memcmp(sim.ids[at].bytes, bytes, 16) == 0 ? (int)at : -1;
}

const char *sim_pause_text(sim_pause pause)
{
    return pause < SIM_PAUSE_TEXTS ? sim.pause_text[pause]
                                   : sim.ids[pause - SIM_PAUSE_TEXTS].text + 4;
}

sim_pause sim_new_pause(void)
{
    uint8_t bytes[16] = {0};
    const uint32_t at = sim.pause_texts % SIM_PAUSE_TEXTS;
    sim.pause_texts++;
    bytes[1] = 0xfe; /* apart from the ids that scripts give */
    bytes[8] = (uint8_t)(sim.pause_texts >> 8);
    bytes[9] = (uint8_t)sim.pause_texts;
    tg_base32_id_encode(bytes, sim.pause_text[at]);
    return (sim_pause)at;
}

sim_pause sim_conflict_pause(uint16_t id)
{
    return (sim_pause)(SIM_PAUSE_TEXTS + id);
}

/* ---- calls ---- */

static uint16_t take(void)
{
    const uint16_t at = sim.gate_call_free;
    if (at != 0) {
        sim.gate_call_free = sim.gate_call_next[at - 1];
        return (uint16_t)(at - 1);
    }
    assert(sim.gate_call_used < SIM_GATE_CALLS);
    return (uint16_t)sim.gate_call_used++;
}

/* Keys are kept by sim_keys(); arguments are copied. */
static void copy_words(struct sim_gate_call *call, const struct reserve_call *wanted)
{
    call->key_count = wanted->key_count;
    call->count = wanted->count;
    call->words = (struct redis_word *)sim_room((size_t)wanted->count * sizeof call->words[0]);
    for (int i = 0; i < wanted->count; i++) {
        struct redis_word *word = &call->words[i];
        word->length = wanted->lengths[i];
        word->text = wanted->words[i];
        if (i >= wanted->key_count) {
            char *room = sim_room(word->length + 1);
            memcpy(room, word->text, word->length);
            word->text = room;
        }
    }
}

void gate_call(uint8_t node, const struct reserve_call *wanted, enum sim_gate_use use,
               uint64_t token)
{
    struct sim_connection *connection = &sim.nodes[node].connection;
    const uint16_t at = take();
    struct sim_gate_call *call = &sim.gate_calls[at];
    *call = (struct sim_gate_call){.node = node,
                                   .gate = connection->gate,
                                   .script = (uint8_t)wanted->script,
                                   .use = (uint8_t)use,
                                   .incarnation = sim.nodes[node].incarnation,
                                   .connection = connection->generation,
                                   .process = sim.redis[connection->gate].process,
                                   .token = token,
                                   .answer = {.ending = RESERVE_NOT_RUN}};
    if (!connection->up) {
        sim_at(sim.now, EVENT_GATE_REPLY, node, at, 0);
        return;
    }
    copy_words(call, wanted);
    const int64_t run_at = sim.now + sim_between(&sim.chance, 1, sim.gate_ms);
    connection->last_run = run_at > connection->last_run ? run_at : connection->last_run;
    sim_at(connection->last_run, EVENT_GATE_RUN, node, at, 0);
}

static bool current(const struct sim_gate_call *call)
{
    const struct sim_connection *connection = &sim.nodes[call->node].connection;
    return connection->up && connection->generation == call->connection && sim.redis[call->gate].up;
}

/* A command on a connection that broke meanwhile: it was read before, or it is lost with all that
 * came after it. */
static bool lost(const struct sim_gate_call *call)
{
    struct sim_connection *connection = &sim.nodes[call->node].connection;
    if (current(call)) {
        return false;
    }
    connection->lost |= !sim.redis[call->gate].up ||
                        sim.redis[call->gate].process != call->process ||
                        sim_percent(&sim.chance, 50);
    return connection->lost;
}

void gate_call_run(uint16_t index)
{
    struct sim_gate_call *call = &sim.gate_calls[index];
    struct sim_redis *redis = &sim.redis[call->gate];
    call->answer = (struct reserve_answer){.ending = RESERVE_UNKNOWN};
    if (!lost(call)) {
        const struct gate_machine machine = {.data = &redis->data,
                                             .now_ms = sim_gate_now(call->gate),
                                             .out_of_memory = redis->out_of_memory};
        const struct gate_words words = {call->key_count, call->count, call->words};
        gate_script_run(&machine, call->script, &words, &call->answer);
        call->ran = true;
        SIM_NOTE("%s: gate %u %s -> %.*s %.*s", sim_node_name(call->node), call->gate,
                 reserve_script_name((enum reserve_script)call->script),
                 call->answer.count > 0 ? (int)call->answer.words[0].length : 6,
                 call->answer.count > 0 ? call->answer.words[0].text : "error:",
                 call->answer.count > 1   ? (int)call->answer.words[1].length
                 : call->answer.count > 0 ? 0
                                          : 80,
                 call->answer.count > 1       ? call->answer.words[1].text
                 : call->answer.words != NULL ? call->answer.words[0].text
                                              : "");
        oracle_gate(call->gate, call, &call->answer);
    }
    if (sim_percent(&sim.chance, 50)) {
        gate_call_reply(index); /* nothing comes in between */
    } else {
        sim_at(sim.now + 1, EVENT_GATE_REPLY, call->node, index, 0);
    }
}

void gate_call_reply(uint16_t index)
{
    struct sim_gate_call call = sim.gate_calls[index];
    sim.gate_call_next[index] = sim.gate_call_free;
    sim.gate_call_free = (uint16_t)(index + 1);
    const struct sim_node *node = &sim.nodes[call.node];
    if (!node->up || node->incarnation != call.incarnation) {
        return;
    }
    if (call.answer.ending != RESERVE_NOT_RUN && !current(&call)) {
        call.answer = (struct reserve_answer){.ending = RESERVE_UNKNOWN};
    }
    reserve_gate_answered(call.node, &call);
}

/* Keys of the checker's look: ctl held unacked settled released buyers used pauses log free... */
void gate_check(int gate, uint64_t epoch, struct reserve_answer *out_answer)
{
    static const uint8_t order[RESERVE_PLAIN_KEYS] = {0, 2, 3, 4, 5, 6, 7, 1, 8};
    struct redis_word words[RESERVE_PLAIN_KEYS + SIM_ITEMS];
    const struct reserve_keys *names = sim_keys(epoch);
    const int count = RESERVE_PLAIN_KEYS + (int)names->item_count;
    for (int i = 0; i < count; i++) {
        const int from = i < RESERVE_PLAIN_KEYS ? order[i] : i;
        words[i] = (struct redis_word){names->text[from], names->lengths[from]};
    }
    const struct gate_machine machine = {.data = &sim.redis[gate].data,
                                         .now_ms = sim_gate_now(gate)};
    const struct gate_words call = {count, count, words};
    gate_script_run(&machine, GATE_SCRIPT_CHECK, &call, out_answer);
}

/* ---- connections ---- */

void gate_connect(uint8_t node)
{
    struct sim_connection *connection = &sim.nodes[node].connection;
    const struct sim_redis *redis = &sim.redis[sim.primary];
    if (!redis->up) {
        sim_at(sim.now + 50, EVENT_CONNECT, node, 0, sim.nodes[node].incarnation);
        return;
    }
    connection->up = true;
    connection->gate = (uint8_t)sim.primary;
    memcpy(connection->run_id, redis->run_id, sizeof connection->run_id);
    memcpy(connection->replication_id, redis->replication_id, sizeof connection->replication_id);
}

void gate_break(uint8_t node)
{
    struct sim_connection *connection = &sim.nodes[node].connection;
    const uint8_t kind = sim_kind(node);
    if (kind != NODE_RESERVE && kind != NODE_INVARIANT) {
        return;
    }
    connection->up = false;
    connection->lost = false;
    connection->generation++;
    if (sim.nodes[node].up) {
        sim_at(sim.now + sim_between(&sim.chance, 5, 150), EVENT_CONNECT, node, 0,
               sim.nodes[node].incarnation);
    }
}

/* Another process: other ids, and nobody is connected to it. */
void gate_new_run(int gate)
{
    struct sim_redis *redis = &sim.redis[gate];
    sim.run_ids++;
    redis->process = sim.run_ids;
    (void)snprintf(redis->run_id, sizeof redis->run_id, "run-%u", sim.run_ids);
    (void)snprintf(redis->replication_id, sizeof redis->replication_id, "set-%u", sim.run_ids);
    redis->up = true;
    redis->primary = true;
    redis->out_of_memory = false;
    for (uint8_t node = 0; node < NODE_PEOPLE; node++) {
        if (sim.nodes[node].connection.up && sim.nodes[node].connection.gate == gate) {
            gate_break(node);
        }
    }
}
