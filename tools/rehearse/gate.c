/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/gate.h"

#include "lib/io/kv.h"
#include "lib/pure/gate_key.h"
#include "lib/pure/number.h"

#include <stdio.h>
#include <string.h>

enum { COMMAND_MS = 2000, CONNECT_MS = 5000, VALUES_MAX = 8 };

/* One reading: a loop of its own, turned until each command is answered. */
struct reading {
    uv_loop_t loop;
    uv_timer_t deadline;
    struct tg_kv *kv;
    bool late, answered;
    int status;
    size_t count;
    uint64_t values[VALUES_MAX];
    bool present[VALUES_MAX];
};

static void on_deadline(uv_timer_t *timer)
{
    struct reading *reading = timer->data;
    reading->late = true;
}

static void take_value(struct reading *reading, const redisReply *reply)
{
    size_t at = reading->count++;
    uint64_t number = 0;
    bool text = reply->type == REDIS_REPLY_STRING && reply->str != NULL;
    if (reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0) {
        reading->values[at] = (uint64_t)reply->integer;
        reading->present[at] = true;
    } else if (text &&
               tg_unsigned_parse(reply->str, (size_t)reply->len, UINT64_MAX, &number) == 0) {
        reading->values[at] = number;
        reading->present[at] = true;
    }
}

static void on_reply(void *context, uint64_t token, int status, const redisReply *reply)
{
    struct reading *reading = context;
    reading->answered = true;
    reading->status = status;
    if (status != 0) {
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY) {
        take_value(reading, reply);
        return;
    }
    for (size_t i = 0; i < reply->elements && i < VALUES_MAX; i++) {
        take_value(reading, reply->element[i]);
    }
}

/* Runs one command to its end; its values are in the reading. */
static int run(struct reading *reading, int argc, const char *const *argv)
{
    size_t lengths[VALUES_MAX + 2];
    for (int i = 0; i < argc; i++) {
        lengths[i] = strlen(argv[i]);
    }
    reading->answered = false;
    reading->count = 0;
    memset(reading->present, 0, sizeof(reading->present));
    memset(reading->values, 0, sizeof(reading->values));
    int error = tg_kv_command(reading->kv, argc, argv, lengths, on_reply, reading, 0);
    while (error == 0 && !reading->answered) {
        uv_run(&reading->loop, UV_RUN_ONCE);
    }
    return error != 0 ? error : reading->status;
}

static int read_item(struct reading *reading, const struct rehearse_sale *sale, uint32_t shard,
                     uint32_t item, struct rehearse_gate *gate)
{
    char key[TG_GATE_KEY_BYTES];
    char stock[24];
    char held[24];
    char settled[24];
    tg_gate_key_format(sale->name, shard, sale->epoch, TG_GATE_KEY_CTL, 0, key);
    snprintf(stock, sizeof(stock), "stock:%u", item);
    snprintf(held, sizeof(held), "held:%u", item);
    snprintf(settled, sizeof(settled), "settled:%u", item);
    const char *const counters[] = {"HMGET", key, stock, held, settled};
    int error = run(reading, 5, counters);
    if (error != 0) {
        return error;
    }
    gate->known = gate->known && reading->present[0] && reading->present[1] && reading->present[2];
    gate->free += reading->values[0];
    gate->held += reading->values[1];
    gate->settled += reading->values[2];
    tg_gate_key_format(sale->name, shard, sale->epoch, TG_GATE_KEY_FREE, item, key);
    const char *const bits[] = {"BITCOUNT", key};
    error = run(reading, 2, bits);
    gate->known = gate->known && reading->present[0];
    gate->bits += reading->values[0];
    return error;
}

static int read_shard(struct reading *reading, const struct rehearse_sale *sale, uint32_t shard,
                      struct rehearse_gate *gate)
{
    char key[TG_GATE_KEY_BYTES];
    tg_gate_key_format(sale->name, shard, sale->epoch, TG_GATE_KEY_CTL, 0, key);
    const char *const sequence[] = {"HMGET", key, "seq", "armed"};
    int error = run(reading, 4, sequence);
    if (error != 0) {
        return error;
    }
    gate->known = gate->known && reading->present[0] && reading->values[1] == 1;
    gate->sequence += reading->values[0];
    tg_gate_key_format(sale->name, shard, sale->epoch, TG_GATE_KEY_UNACKED, 0, key);
    const char *const unacked[] = {"SCARD", key};
    error = run(reading, 2, unacked);
    gate->unacked += reading->values[0];
    for (uint32_t item = 0; item < sale->item_count && error == 0; item++) {
        error = read_item(reading, sale, shard, item, gate);
    }
    return error;
}

static int read_all(struct reading *reading, const struct rehearse_sale *sale,
                    struct rehearse_gate *out_gate)
{
    while (tg_kv_server(reading->kv) == NULL && !reading->late) {
        uv_run(&reading->loop, UV_RUN_ONCE);
    }
    if (tg_kv_server(reading->kv) == NULL) {
        fputs("rehearse: gate: no connection to Redis\n", stderr);
        return TG_ERR_DISCONNECTED;
    }
    struct rehearse_gate gate = {.known = true};
    int error = 0;
    for (uint32_t shard = 0; shard < sale->shards && error == 0; shard++) {
        error = read_shard(reading, sale, shard, &gate);
    }
    if (error == 0) {
        *out_gate = gate;
    }
    return error;
}

int rehearse_gate_read(const char *url, const struct rehearse_sale *sale,
                       struct rehearse_gate *out_gate)
{
    struct reading reading = {0};
    int error = uv_loop_init(&reading.loop);
    if (error != 0) {
        return error;
    }
    uv_timer_init(&reading.loop, &reading.deadline);
    reading.deadline.data = &reading;
    const struct tg_kv_spec spec = {.url = url, .command_ms = COMMAND_MS, .in_flight_max = 1};
    error = uv_timer_start(&reading.deadline, on_deadline, CONNECT_MS, 0);
    if (error == 0) {
        error = tg_kv_open(&reading.loop, &spec, &reading.kv);
    }
    if (error == 0) {
        error = read_all(&reading, sale, out_gate);
    }
    reading.kv = tg_kv_free(reading.kv);
    uv_close((uv_handle_t *)&reading.deadline, NULL);
    uv_run(&reading.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&reading.loop) != 0 && error == 0) {
        error = TG_ERR_REMOTE;
    }
    return error;
}
