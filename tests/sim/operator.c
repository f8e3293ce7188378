/* SPDX-License-Identifier: Apache-2.0
 * An operator: commands at any moment on what he last heard; in the end he makes it run again. */
#include "tests/sim/sim.h"

#include <string.h>

enum { REPEAT_MS = 400 };

uint16_t operator_command(const struct ledger_judge *judge)
{
    struct ledger_judge command = *judge;
    command.number = (uint16_t)(sim.commands++ % SIM_COMMANDS);
    sim.operator_commands[command.number] = command;
    const union sim_body body = {.control = command};
    SIM_NOTE("operator: command %u, kind %d", command.number, command.kind);
    bus_publish(NODE_OPERATOR, MESSAGE_CONTROL, &body);
    return command.number;
}

void operator_pause(void)
{
    const struct ledger_judge judge = {.kind = LEDGER_PAUSE, .pause = sim_new_pause()};
    const uint16_t number = operator_command(&judge);
    if (sim.operator_pause_count < SIM_PAUSE_TEXTS) {
        sim.operator_pauses[sim.operator_pause_count++] = number;
    }
}

void operator_resume(void)
{
    struct ledger_judge judge = {.kind = LEDGER_RESUME,
                                 .sequence = sim.operator_knows.control_sequence,
                                 .pause_count = sim.operator_knows.pause_count};
    memcpy(judge.pauses, sim.operator_knows.pauses, sizeof judge.pauses);
    (void)operator_command(&judge);
}

void operator_rebuild(void)
{
    const struct ledger_judge judge = {.kind = LEDGER_REBUILD, .pause = sim_new_pause()};
    (void)operator_command(&judge);
}

void operator_close(void)
{
    const struct ledger_judge judge = {.kind = LEDGER_CLOSE};
    (void)operator_command(&judge);
}

void operator_replay(void)
{
    const uint32_t kept = sim.commands < SIM_COMMANDS ? sim.commands : SIM_COMMANDS;
    if (kept > 0) {
        const uint32_t at = sim_below(&sim.fault_chance[FAULT_REPLAY], kept);
        const union sim_body body = {.control = sim.operator_commands[at]};
        if (body.control.number == at && at != 0) {
            sim_occurred(FAULT_REPLAY);
            bus_publish(NODE_OPERATOR, MESSAGE_CONTROL, &body);
        }
    }
}

void operator_heard(const struct sim_packet *packet)
{
    const struct sim_state *state = &packet->body.state;
    if (packet->kind == MESSAGE_STATE &&
        (state->epoch > sim.operator_knows.epoch ||
         (state->epoch == sim.operator_knows.epoch &&
          state->control_sequence >= sim.operator_knows.control_sequence))) {
        sim.operator_knows = *state;
    }
}

static bool named(const sim_pause *pauses, uint32_t count, sim_pause pause)
{
    for (uint32_t i = 0; i < count; i++) {
        if (pauses[i] == pause) {
            return true;
        }
    }
    return false;
}

/* ---- making it run again ---- */

static void name(struct ledger_judge *judge, const char *text)
{
    const uint32_t kept = sim.pause_texts < SIM_PAUSE_TEXTS ? sim.pause_texts : SIM_PAUSE_TEXTS;
    for (uint32_t i = 0; i < kept; i++) {
        if (strcmp(sim.pause_text[i], text) == 0 && judge->pause_count < SIM_PAUSES &&
            !named(judge->pauses, judge->pause_count, (sim_pause)i)) {
            judge->pauses[judge->pause_count++] = (sim_pause)i;
        }
    }
}

/* Every pause that anybody still honours, also those the ledger never heard of. */
static void resume_all(void)
{
    const struct ledger *ledger = &sim.ledger;
    struct ledger_judge judge = {.kind = LEDGER_RESUME,
                                 .sequence = ledger->control_sequence,
                                 .pause_count = ledger->pause_count};
    memcpy(judge.pauses, ledger->pauses, sizeof judge.pauses);
    for (int i = 0; i < TWO; i++) {
        const struct tg_sale *view = &sim.reserves[i].view;
        for (uint32_t n = 0; n < view->own_pause_count; n++) {
            name(&judge, view->own_pauses[n].id);
        }
    }
    (void)operator_command(&judge);
}

static bool own_pauses(void)
{
    return sim.reserves[0].view.own_pause_count + sim.reserves[1].view.own_pause_count > 0;
}

/* The gate of this epoch can never sell again: it is gone, or closed by something no resume names.
 */
static bool beyond_resume(void)
{
    const struct ledger *ledger = &sim.ledger;
    const struct sim_redis *redis = &sim.redis[sim.primary];
    const struct reserve_keys *names = sim_keys(ledger->epoch);
    const struct redis_key *ctl =
        redis_find(&sim.redis[sim.primary].data, names->text[0], names->lengths[0]);
    const struct redis_key *pauses =
        redis_find(&sim.redis[sim.primary].data, names->text[1], names->lengths[1]);
    if (!ledger->armed) {
        return sim.now - sim.rebuilt_at > 4000;
    }
    if (strcmp(ledger->run_id, redis->run_id) != 0 ||
        strcmp(ledger->replication_id, redis->replication_id) != 0 || ctl == NULL) {
        return true;
    }
    if (sim.alarmed_since) {
        return true;
    }
    for (uint16_t at = pauses != NULL ? pauses->first : 0; at != 0;) {
        const struct redis_entry *entry = &redis->data.entries[at - 1];
        at = entry->next;
        if (memmem(entry->value, entry->value_length, "doubt", 5) != NULL ||
            memmem(entry->value, entry->value_length, "conflict", 8) != NULL) {
            return true;
        }
    }
    return false;
}

static void heal(void)
{
    const struct ledger *ledger = &sim.ledger;
    if (ledger->stage == TG_PHASE_CLOSED || sim.corrupted) {
        return;
    }
    if (beyond_resume() && sim.now - sim.rebuilt_at > 1500) {
        sim.rebuilt_at = sim.now;
        sim.alarmed_since = false;
        operator_rebuild();
        return;
    }
    if (ledger->armed && (ledger->pause_count > 0 || own_pauses()) && ledger->clean_rounds >= 2) {
        resume_all();
    }
}

void operator_turn(void)
{
    for (uint32_t i = 0; i < sim.operator_pause_count; i++) {
        const struct ledger_judge *command = &sim.operator_commands[sim.operator_pauses[i]];
        const struct sim_state *state = &sim.operator_knows;
        if (named(state->pauses, state->pause_count, command->pause) ||
            named(state->lifted, state->lifted_count, command->pause)) {
            sim.operator_pauses[i--] = sim.operator_pauses[--sim.operator_pause_count];
            continue;
        }
        const union sim_body body = {.control = *command};
        bus_publish(NODE_OPERATOR, MESSAGE_CONTROL, &body);
    }
    if (sim.healing || (sim.attentive && sim.now >= sim.calm_until)) {
        heal();
    }
    sim_at(sim.now + REPEAT_MS, EVENT_OPERATOR, NODE_OPERATOR, 0, 0);
}
