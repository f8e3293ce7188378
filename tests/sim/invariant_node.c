/* SPDX-License-Identifier: Apache-2.0
 * A checker: when it reads, what it says of it, and the log it exports; as services/invariant's
 * shell. The reads are invariant_reads.c's. */
#include "tests/sim/invariant_reads.h"

#include <string.h>

enum { TURN_MS = 100, EXPORT_MS = 400 };

static struct invariant_node *at(uint8_t node)
{
    return &sim.invariants[node - NODE_INVARIANT];
}

void invariant_start(uint8_t node)
{
    struct invariant_node *checker = at(node);
    checker->stated = false;
    checker->ledger_now_ms = 0;
    checker->view.own_pause_count = 0;
    memset(&checker->core, 0, offsetof(struct invariant_sale, unacked));
    checker->core.unacked.count = 0;
    checker->core.unobeyed.count = 0;
    checker->core.last_epoch = 0;
    checker->exporting = false;
    checker->exported = 0;
    checker->export_epoch = 0;
    const uint32_t incarnation = sim.nodes[node].incarnation;
    sim_at(sim.now + 4, EVENT_CONNECT, node, 0, incarnation);
    sim_at(sim.now + sim_between(&sim.chance, 5, TURN_MS), EVENT_TICK, node, 0, incarnation);
    sim_at(sim.now + sim_between(&sim.chance, 50, EXPORT_MS), EVENT_EXPORT, node, 0, incarnation);
}

void invariant_heard(uint8_t node, const struct sim_packet *packet)
{
    struct invariant_node *checker = at(node);
    if (packet->kind == MESSAGE_STATE) {
        (void)view_take(&checker->view, &checker->stated, &checker->ledger_now_ms,
                        &packet->body.state, sim_mono(node));
    }
}

/* ---- what follows from a judgement ---- */

static void store(uint8_t node, uint64_t epoch, enum invariant_outcome outcome)
{
    static const enum ledger_check outcomes[] = {[INVARIANT_CLEAN] = LEDGER_CHECK_CLEAN,
                                                 [INVARIANT_VOID] = LEDGER_CHECK_VOID,
                                                 [INVARIANT_ALARM] = LEDGER_CHECK_ALARM};
    const union sim_body body = {.check = {.epoch = epoch, .outcome = outcomes[outcome]}};
    bus_call(node, MESSAGE_CHECK, &body, 0);
}

static void attest(uint8_t node)
{
    const struct invariant_node *checker = at(node);
    const uint64_t epoch = checker->core.round.epoch;
    union sim_body body = {.attest = {.epoch = epoch, .gate_time_ms = checker->look1.gate_ms}};
    const int64_t until_ms = checker->look1.gate_ms + sim.ledger.lease_ms;
    if (until_ms > sim.proved_until_ms[epoch]) {
        sim.proved_until_ms[epoch] = until_ms;
    }
    memcpy(body.attest.run_id, checker->server.run_id, sizeof body.attest.run_id);
    memcpy(body.attest.replication_id, checker->server.replication_id,
           sizeof body.attest.replication_id);
    bus_call(node, MESSAGE_ATTEST, &body, 0);
}

static void alarm(uint8_t node, const struct invariant_judgement *judgement)
{
    struct invariant_node *checker = at(node);
    const sim_pause pause = (sim_pause)(sim.pause_texts % SIM_PAUSE_TEXTS);
    char detail[256];
    (void)invariant_detail(judgement, detail, sizeof detail);
    SIM_NOTE("%s ALARM %s", sim_node_name(node), detail);
    oracle_alarm(node, judgement);
    const sim_pause text = sim_new_pause();
    invariant_alarm(&checker->core, &checker->view, sim_pause_text(text), detail);
    if (strcmp(checker->core.pause.id, sim_pause_text(text)) == 0) {
        checker->pause = pause;
        checker->pause_command = (uint16_t)(sim.commands++ % SIM_COMMANDS);
    } else {
        sim.pause_texts--; /* a pause of ours is on its way or in force */
    }
}

static void report(uint8_t node, const struct invariant_judgement *judgement, bool ran)
{
    struct invariant_node *checker = at(node);
    const uint64_t epoch = ran ? checker->core.round.epoch : checker->view.epoch;
    sim_totals.rounds++;
    SIM_NOTE("%s round: %s", sim_node_name(node),
             judgement->outcome == INVARIANT_CLEAN  ? "clean"
             : judgement->outcome == INVARIANT_VOID ? judgement->void_note
                                                    : "alarm");
    sim.rounds_since += judgement->outcome != INVARIANT_VOID && epoch == sim.ledger.epoch;
    switch (judgement->outcome) {
    case INVARIANT_CLEAN:
        attest(node);
        break;
    case INVARIANT_VOID:
        break;
    case INVARIANT_ALARM:
        alarm(node, judgement);
        break;
    }
    if (!sim_dies(node)) {
        store(node, epoch, judgement->outcome);
    }
}

/* ---- rounds ---- */

static void next_read(uint8_t node)
{
    const struct invariant_round *round = &at(node)->core.round;
    const bool slow = !sim.healing && sim_percent(&sim.chance, 3);
    const int64_t after_ms = slow ? sim_between(&sim.chance, 20, 700) : 1;
    sim_at(sim.now + after_ms, EVENT_READ, node, (uint16_t)round->number,
           sim.nodes[node].incarnation);
}

static void send_pause(uint8_t node)
{
    struct invariant_node *checker = at(node);
    const union sim_body body = {.control = {.kind = LEDGER_PAUSE,
                                             .number = checker->pause_command,
                                             .pause = checker->pause,
                                             .sequence = checker->view.control_sequence}};
    SIM_NOTE("%s sends its pause", sim_node_name(node));
    bus_publish(node, MESSAGE_CONTROL, &body);
}

static void lost(uint8_t node)
{
    struct invariant_judgement judgement = {.outcome = INVARIANT_ALARM};
    judgement.findings[INVARIANT_CHECK_G] =
        (struct invariant_finding){.failures = 1, .note = "Redis is out of reach"};
    report(node, &judgement, false);
}

void invariant_tick(uint8_t node)
{
    struct invariant_node *checker = at(node);
    const int64_t rest_ms = checker->core.next_round.ms - sim_mono(node).ms;
    sim_at(sim.now + (rest_ms > TURN_MS && rest_ms < 1000 ? rest_ms : TURN_MS), EVENT_TICK, node, 0,
           sim.nodes[node].incarnation);
    if (!checker->stated) {
        return;
    }
    switch (invariant_turn(&checker->core, &checker->view, sim_mono(node),
                           sim.nodes[node].connection.up)) {
    case INVARIANT_TURN_NONE:
        break;
    case INVARIANT_TURN_ROUND:
        next_read(node);
        break;
    case INVARIANT_TURN_LOST:
        lost(node);
        break;
    }
    if (sim.nodes[node].up && invariant_pause_due(&checker->core, &checker->view, sim_mono(node))) {
        send_pause(node);
    }
}

void invariant_read(uint8_t node, uint16_t number)
{
    struct invariant_node *checker = at(node);
    struct invariant_round *round = &checker->core.round;
    if ((uint16_t)round->number != number || round->step == INVARIANT_REST || sim_dies(node)) {
        return;
    }
    if (round->step != INVARIANT_JUDGE) {
        do {
            invariant_read_step(node, checker);
        } while (round->step != INVARIANT_REST && round->step != INVARIANT_JUDGE &&
                 sim_percent(&sim.chance, 40));
        if (round->step != INVARIANT_REST && round->step != INVARIANT_JUDGE) {
            next_read(node);
            return;
        }
    }
    struct invariant_judgement judgement = {.outcome = INVARIANT_VOID,
                                            .void_note = "a read failed"};
    if (round->step == INVARIANT_JUDGE) {
        invariant_read_judge(checker, &judgement);
    }
    report(node, &judgement, true);
    invariant_rest(&checker->core);
}

/* ---- export ---- */

static bool page_of(struct invariant_node *checker, uint8_t node, union sim_body *body)
{
    const struct sim_connection *connection = &sim.nodes[node].connection;
    struct memory_redis *data = &sim.redis[connection->gate].data;
    const struct reserve_keys *names = sim_keys(checker->export_epoch);
    const struct redis_key *key = redis_find(data, names->text[8], names->lengths[8]);
    body->log.epoch = checker->export_epoch;
    body->log.count = 0;
    for (uint16_t entry = key != NULL && key->type == REDIS_STREAM ? key->first : 0;
         entry != 0 && body->log.count < SIM_PAGE; entry = data->log[entry - 1].next) {
        const struct redis_log *log = &data->log[entry - 1];
        if (log->sequence > checker->exported) {
            struct ledger_log *row = &body->log.entries[body->log.count++];
            *row = (struct ledger_log){
                .sequence = log->sequence, .stock_after = log->stock_after, .readable = true};
            invariant_read_change(log, row);
        }
    }
    return body->log.count > 0;
}

void invariant_export(uint8_t node)
{
    struct invariant_node *checker = at(node);
    const struct sim_connection *connection = &sim.nodes[node].connection;
    union sim_body body;
    sim_at(sim.now + EXPORT_MS, EVENT_EXPORT, node, 0, sim.nodes[node].incarnation);
    if (!checker->stated || !checker->view.armed || checker->exporting || !connection->up) {
        return;
    }
    if (checker->export_epoch != checker->view.epoch) {
        checker->export_epoch = checker->view.epoch;
        checker->exported = 0;
    }
    if (page_of(checker, node, &body)) {
        checker->exporting = true;
        bus_call(node, MESSAGE_LOG, &body, checker->export_epoch);
    }
}

void invariant_replied(uint8_t node, const struct sim_packet *packet)
{
    struct invariant_node *checker = at(node);
    if (packet->kind != MESSAGE_LOG) {
        return;
    }
    checker->exporting = false;
    if (packet->no_answer || packet->token != checker->export_epoch) {
        return;
    }
    const bool more = packet->body.log.stored > checker->exported;
    checker->exported = packet->body.log.stored;
    if (more) {
        const union sim_body body = {
            .trim = {.epoch = checker->export_epoch, .stored = checker->exported}};
        bus_call(node, MESSAGE_TRIM, &body, 0);
    }
}
