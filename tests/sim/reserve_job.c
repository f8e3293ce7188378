/* SPDX-License-Identifier: Apache-2.0
 * What sweeper, ledger and checker ask of the gate, as services/reserve/service_obey.c answers. */
#include "tests/sim/sim.h"

#include <string.h>

enum { DUE_PAGES_MAX = 8 };

static struct reserve_node *at(uint8_t node)
{
    return &sim.reserves[node - NODE_RESERVE];
}

static struct sim_job *take_job(uint8_t node, const struct sim_packet *packet)
{
    struct reserve_node *reserve = at(node);
    for (uint32_t i = 0; i < SIM_JOBS; i++) {
        struct sim_job *job = &reserve->jobs[i];
        if (job->number == 0) {
            memset(job, 0, sizeof *job);
            job->number = ++reserve->numbers * SIM_JOBS + i;
            job->kind = packet->kind;
            job->back = packet->back;
            job->epoch = reserve->view.epoch;
            return job;
        }
    }
    return NULL;
}

static uint64_t epoch_named(const struct sim_packet *packet, uint64_t own)
{
    switch (packet->kind) {
    case MESSAGE_OBEY:
        return packet->body.obey.orders.epoch;
    case MESSAGE_ATTEST:
        return packet->body.attest.epoch;
    case MESSAGE_TRIM:
        return packet->body.trim.epoch;
    default:
        break;
    }
    return own;
}

static void refuse(uint8_t node, const struct sim_packet *packet, enum tg_reason reason)
{
    union sim_body body;
    memset(&body, 0, sizeof body);
    if (packet->kind == MESSAGE_OBEY) {
        body.results.reason = reason;
    } else if (packet->kind == MESSAGE_GATE_DUE) {
        body.gate_due.reason = reason;
    } else {
        body.reason = reason;
    }
    bus_reply(node, &packet->back, &body);
}

static void finish(uint8_t node, struct sim_job *job)
{
    job->number = 0;
    if (!sim_dies(node)) {
        bus_reply(node, &job->back, &job->reply);
    }
}

/* ---- obey ---- */

static void begin_obey(uint8_t node, struct sim_job *job, const struct sim_packet *packet,
                       const struct reserve_gate_name *gate)
{
    static const enum reserve_script scripts[] = {RESERVE_SCRIPT_SETTLE, RESERVE_SCRIPT_RELEASE,
                                                  RESERVE_SCRIPT_EXTEND};
    const struct ledger_orders *orders = &packet->body.obey.orders;
    job->reply.results.orders = *orders;
    job->outstanding = orders->count;
    const uint32_t number = job->number;
    for (uint8_t i = 0; i < orders->count; i++) {
        struct reserve_call call;
        reserve_call_obey(&call, gate, scripts[orders->kinds[i]], sim.ids[orders->ids[i]].text,
                          packet->body.obey.deadline_ms);
        gate_call(node, &call, USE_OBEY, (uint64_t)number * SIM_PAGE + i);
    }
}

static enum sweeper_obedience obedience_of(enum reserve_obeyed obeyed)
{
    switch (obeyed) {
    case RESERVE_OBEYED_DONE:
        return SWEEPER_DONE;
    case RESERVE_OBEYED_ALREADY:
        return SWEEPER_ALREADY;
    case RESERVE_OBEYED_UNKNOWN_RESERVATION:
        return SWEEPER_NOT_KNOWN_THERE;
    case RESERVE_OBEYED_DOUBT:
        return SWEEPER_DOUBT;
    case RESERVE_OBEYED_UNKNOWN_GATE:
    case RESERVE_OBEYED_UNKNOWN:
        break;
    }
    return SWEEPER_UNANSWERED;
}

static struct sim_job *find_job(uint8_t node, uint64_t number)
{
    struct sim_job *job = &at(node)->jobs[number % SIM_JOBS];
    return job->number == number && number != 0 ? job : NULL;
}

static void obeyed(uint8_t node, const struct sim_gate_call *call)
{
    struct sim_job *job = find_job(node, call->token / SIM_PAGE);
    if (job == NULL) {
        return;
    }
    job->reply.results.obedience[call->token % SIM_PAGE] =
        (uint8_t)obedience_of(reserve_answer_obeyed(&call->answer));
    if (call->answer.ending == RESERVE_BROKEN) {
        reserve_close_gate(node, sim_new_pause(), "doubt");
    }
    if (--job->outstanding == 0) {
        finish(node, job);
    }
}

/* ---- due ---- */

static void due_page(uint8_t node, struct sim_job *job, const struct reserve_gate_name *gate)
{
    struct reserve_call call;
    reserve_call_due(&call, gate, job->cursor, INT64_C(-1000000000), 0);
    gate_call(node, &call, USE_DUE, job->number);
}

static void due_take(struct sim_job *job, const struct reserve_answer *answer)
{
    for (size_t i = 2; i + 1 < answer->count && job->reply.gate_due.count < SIM_PAGE; i += 2) {
        const struct reserve_word *packed = &answer->words[i + 1];
        struct tg_hold_record record;
        const int id = sim_id_of(answer->words[i].text, answer->words[i].length);
        if (id >= 0 && tg_hold_record_parse(packed->text, packed->length, &record) == 0) {
            job->reply.gate_due.holds[job->reply.gate_due.count++] =
                (struct ledger_hold){.id = (uint16_t)id,
                                     .user = sim.ids[id].buyer,
                                     .key = sim.ids[id].key,
                                     .window = record.window};
        }
    }
}

static void due_answered(uint8_t node, const struct sim_gate_call *call)
{
    struct sim_job *job = find_job(node, call->token);
    struct reserve_gate_name gate;
    if (job == NULL) {
        return;
    }
    const struct reserve_answer *answer = &call->answer;
    if (answer->ending != RESERVE_ENDED || !reserve_word_is(answer, 0, "due") ||
        !reserve_word_copy(answer, 1, job->cursor, sizeof job->cursor)) {
        job->reply.gate_due.reason = TG_REASON_TRY_AGAIN;
        finish(node, job);
        return;
    }
    due_take(job, answer);
    job->pages++;
    job->reply.gate_due.epoch = job->epoch;
    job->reply.gate_due.full = job->reply.gate_due.count == SIM_PAGE;
    if (strcmp(job->cursor, "0") == 0 || job->reply.gate_due.full || job->pages >= DUE_PAGES_MAX) {
        finish(node, job);
    } else if (reserve_gate_name(node, &gate) && gate.keys->epoch == job->epoch) {
        due_page(node, job, &gate);
    } else {
        job->reply.gate_due.reason = TG_REASON_TRY_AGAIN;
        finish(node, job);
    }
}

/* ---- attest and trim ---- */

static void begin_attest(uint8_t node, struct sim_job *job, const struct sim_packet *packet,
                         const struct reserve_gate_name *gate)
{
    const struct reserve_attestation attestation = {
        .run_id = packet->body.attest.run_id,
        .replication_id = packet->body.attest.replication_id,
        .gate_time_ms = packet->body.attest.gate_time_ms,
        .lease_ms = at(node)->view.proof_lease_ms};
    struct reserve_call call;
    reserve_call_attest(&call, gate, &attestation);
    gate_call(node, &call, USE_ATTEST, job->number);
}

static void begin_trim(uint8_t node, struct sim_job *job, const struct sim_packet *packet,
                       const struct reserve_gate_name *gate)
{
    struct reserve_call call;
    reserve_call_trim(&call, gate, packet->body.trim.stored);
    gate_call(node, &call, USE_TRIM, job->number);
}

static void asked(uint8_t node, const struct sim_gate_call *call)
{
    struct sim_job *job = find_job(node, call->token);
    if (job != NULL) {
        job->reply.reason =
            call->answer.ending == RESERVE_ENDED ? TG_REASON_NONE : TG_REASON_TRY_AGAIN;
        finish(node, job);
    }
}

/* ---- from and to ---- */

/* The connected Redis is the one the ledger knows as the gate of this epoch. */
static bool is_the_gate(uint8_t node, const char *present_seal)
{
    const struct tg_sale *view = &at(node)->view;
    char seal[RESERVE_SEAL_BYTES];
    reserve_seal(view->run_id, view->replication_id, seal);
    return sim.mutant == MUTANT_OBEY_FOREIGN_GATE ||
           (view->armed && strcmp(seal, present_seal) == 0);
}

void reserve_job_begin(uint8_t node, const struct sim_packet *packet)
{
    struct reserve_gate_name gate;
    enum tg_reason reason = TG_REASON_NONE;
    if (!reserve_gate_name(node, &gate)) {
        reason = TG_REASON_TRY_AGAIN;
    } else if (epoch_named(packet, gate.keys->epoch) != gate.keys->epoch &&
               !(packet->kind == MESSAGE_OBEY && sim.mutant == MUTANT_OBEY_ANY_EPOCH)) {
        reason = TG_REASON_STALE_EPOCH;
    }
    if (reason == TG_REASON_NONE && !is_the_gate(node, gate.seal)) {
        reason = TG_REASON_UNKNOWN_GATE;
    }
    struct sim_job *job = reason == TG_REASON_NONE ? take_job(node, packet) : NULL;
    if (job == NULL) {
        refuse(node, packet, reason == TG_REASON_NONE ? TG_REASON_TRY_AGAIN : reason);
        return;
    }
    memcpy(job->cursor, "0", 2);
    switch (packet->kind) {
    case MESSAGE_OBEY:
        begin_obey(node, job, packet, &gate);
        break;
    case MESSAGE_GATE_DUE:
        due_page(node, job, &gate);
        break;
    case MESSAGE_ATTEST:
        begin_attest(node, job, packet, &gate);
        break;
    default:
        begin_trim(node, job, packet, &gate);
        break;
    }
}

void reserve_job_answered(uint8_t node, const struct sim_gate_call *call)
{
    if (call->use == USE_OBEY) {
        obeyed(node, call);
    } else if (call->use == USE_DUE) {
        due_answered(node, call);
    } else {
        asked(node, call);
    }
}
