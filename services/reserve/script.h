/* SPDX-License-Identifier: Apache-2.0
 * Calls of the gate scripts: keys and arguments in the order their headers say. Pure; a call
 * borrows what it is given until it was run. */
#ifndef RESERVE_SCRIPT_H
#define RESERVE_SCRIPT_H

#include "lib/pure/gate_key.h"
#include "services/reserve/answer.h"
#include "services/reserve/core.h"

enum reserve_script {
#define RESERVE_SCRIPT(id, name) RESERVE_SCRIPT_##id,
#include "services/reserve/script.def"
#undef RESERVE_SCRIPT
    RESERVE_SCRIPT_COUNT
};
const char *reserve_script_name(enum reserve_script script);

enum {
    RESERVE_GATE_FORMAT = 1,
    RESERVE_SEAL_BYTES = 96,
    RESERVE_PLAIN_KEYS =
        9, /* ctl pauses held unacked settled released buyers used log; then free:ITEM */
    RESERVE_CALL_WORDS = 256
};

/* The names of one gate's keys. */
struct reserve_keys {
    uint64_t epoch;
    uint32_t item_count; /* 0: not made yet */
    char text[RESERVE_PLAIN_KEYS + TG_MAX_ITEMS_PER_SALE][TG_GATE_KEY_BYTES];
    size_t lengths[RESERVE_PLAIN_KEYS + TG_MAX_ITEMS_PER_SALE];
};
void reserve_keys_make(const char *sale, uint32_t shard, uint64_t epoch, uint32_t item_count,
                       struct reserve_keys *out_keys);

struct reserve_call {
    enum reserve_script script;
    int key_count, count; /* words in all, keys first */
    const char *words[RESERVE_CALL_WORDS];
    size_t lengths[RESERVE_CALL_WORDS];
    char own[4096]; /* numbers and texts made here */
    size_t own_used;
};

/* "FORMAT RUN_ID REPLICATION_ID", what an armed gate carries. Ids of at most 40 characters. */
void reserve_seal(const char *run_id, const char *replication_id,
                  char out_seal[RESERVE_SEAL_BYTES]);

/* What a hold depends on besides the request. */
struct reserve_hold_terms {
    const char *seal, *source;
    bool open;
    int64_t provisional_ms; /* hold + grace */
};
void reserve_call_hold(struct reserve_call *out_call, const struct reserve_keys *keys,
                       const struct reserve_request *request,
                       const struct reserve_hold_terms *terms);

/* Who speaks to which gate. */
struct reserve_gate_name {
    const struct reserve_keys *keys;
    const char *seal, *source;
};
void reserve_call_acknowledge(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                              const char *reservation, int64_t deadline_ms);
/* script: SETTLE, RELEASE or EXTEND (deadline used there only). */
void reserve_call_obey(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                       enum reserve_script script, const char *reservation, int64_t deadline_ms);
struct reserve_attestation {
    const char *run_id, *replication_id;
    int64_t gate_time_ms, lease_ms;
};
void reserve_call_attest(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                         const struct reserve_attestation *attestation);
void reserve_call_trim(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                       uint64_t stored_sequence);
/* Holds with more than left_above_ms and at most left_up_to_ms to go. `cursor` as in the last
 * answer, "0" to begin. */
void reserve_call_due(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                      const char *cursor, int64_t left_above_ms, int64_t left_up_to_ms);
void reserve_call_look(struct reserve_call *out_call, const struct reserve_keys *keys);
/* Ids are added one by one with reserve_call_pause_id and reserve_call_lift_id. */
void reserve_call_pause(struct reserve_call *out_call, const struct reserve_keys *keys);
void reserve_call_pause_id(struct reserve_call *call, const char *id, const char *cause);
void reserve_call_lift(struct reserve_call *out_call, const struct reserve_keys *keys);
void reserve_call_lift_id(struct reserve_call *call, const char *id);

struct reserve_loader {
    const struct reserve_keys *keys;
    const char *instance, *run_id, *replication_id;
};
void reserve_call_load_begin(struct reserve_call *out_call, const struct reserve_loader *loader,
                             const struct tg_sale *sale);
/* Rows are added with reserve_call_load_row; at most TG_MAX_SNAPSHOT_PAGE. */
void reserve_call_load_page(struct reserve_call *out_call, const struct reserve_loader *loader,
                            uint32_t page);
/* state: "held", "settled" or "released". Texts are borrowed. */
void reserve_call_load_row(struct reserve_call *call, const char *state, const char *reservation,
                           const struct reserve_word *packed);
void reserve_call_load_finish(struct reserve_call *out_call, const struct reserve_loader *loader);
void reserve_call_arm(struct reserve_call *out_call, const struct reserve_loader *loader);

#endif
