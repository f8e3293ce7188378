/* SPDX-License-Identifier: Apache-2.0
 * Control, as one daemon hears it over a bus that loses, repeats, reorders and forges. A ledger of
 * the simplest kind keeps the truth: pauses begin and are lifted, each change raises its sequence,
 * and its announcements may arrive in any order and again. However they and the commands arrive:
 * while a pause is known to the daemon and no state that lists it as lifted has arrived, the sale
 * is not open. Nothing unsigned, changed, expired or merely repeated moves anything. */
#include "tests/fuzz/fuzz.h"

#include "lib/io/bus_inner.h"
#include "lib/io/sales_inner.h"

#include <sodium.h>

enum { PAUSES = 6, STATES = 24, STEPS_MAX = 100, SIGNED_BYTES_MAX = 1024 };
#define NOW_MS INT64_C(1800000000000)

static struct tg_sign_key operator_key = {.id = "01234567"}, invariant_key = {.id = "89abcdef"};
static struct tg_verify_key operator_public, invariant_public;
static char pause_ids[PAUSES][TG_BASE32_ID_LENGTH + 1];

/* What the ledger says at one instant. */
struct truth {
    uint64_t generation, epoch, sequence;
    int64_t clock_ms;
    bool active[PAUSES], lifted[PAUSES];
};

struct run {
    struct truth ledger;
    struct truth told[STATES]; /* announcements on the bus; any may arrive, any number of times */
    uint32_t told_count;
    struct sales_entry entry;
    struct tg_mono now;
    struct tg_wall wall;
    bool known[PAUSES];
    uint64_t known_for[PAUSES]; /* highest generation it was meant for */
};

static void make_keys(void)
{
    static const uint8_t first[32] = "operator of tests", second[32] = "invariant of tests";
    if (operator_public.public_key[0] != 0) {
        return;
    }
    (void)crypto_sign_seed_keypair(operator_key.public_key, operator_key.secret, first);
    (void)crypto_sign_seed_keypair(invariant_key.public_key, invariant_key.secret, second);
    memcpy(operator_public.public_key, operator_key.public_key, sizeof(operator_key.public_key));
    memcpy(invariant_public.public_key, invariant_key.public_key, sizeof(invariant_key.public_key));
    for (uint8_t i = 0; i < PAUSES; i++) {
        const uint8_t id[16] = {i};
        tg_base32_id_encode(id, pause_ids[i]);
    }
}

/* ---- the ledger ---- */

static void ledger_moves(struct run *run, struct choice *choice)
{
    struct truth *ledger = &run->ledger;
    size_t i = choice_below(choice, PAUSES);
    switch (choice_below(choice, 4)) {
    case 0:
        if (!ledger->lifted[i]) {
            ledger->active[i] = true;
        }
        break;
    case 1:
        if (ledger->active[i]) {
            ledger->active[i] = false;
            ledger->lifted[i] = true;
        }
        break;
    case 2:
        ledger->epoch++;
        break;
    default:
        *ledger = (struct truth){.generation = ledger->generation + 1,
                                 .epoch = ledger->epoch + 1,
                                 .clock_ms = ledger->clock_ms};
        break;
    }
    ledger->sequence++;
}

static void ledger_tells(struct run *run)
{
    run->ledger.clock_ms++;
    run->told[run->told_count++ % STATES] = run->ledger;
}

/* ---- states ---- */

static void note_taken(struct run *run, const struct truth *truth, uint64_t generation_before)
{
    for (size_t i = 0; i < PAUSES; i++) {
        if (truth->generation != generation_before && run->known_for[i] < truth->generation) {
            run->known[i] = false; /* meant for an earlier sale of this name */
        }
        if (truth->active[i]) {
            run->known[i] = true;
            run->known_for[i] = truth->generation;
        } else if (truth->lifted[i]) {
            run->known[i] = false;
        }
    }
}

static void state_arrives(struct run *run, const struct truth *truth)
{
    Tidegate__V1__SaleState state = TIDEGATE__V1__SALE_STATE__INIT;
    Tidegate__V1__PauseEntry rows[PAUSES], *pauses[PAUSES];
    uint8_t digest[TG_DIGEST_BYTES] = {0};
    char *lifted[PAUSES];
    uint64_t generation = run->entry.sale.generation;
    for (size_t i = 0; i < PAUSES; i++) {
        tidegate__v1__pause_entry__init(&rows[i]);
        rows[i].pause_id = pause_ids[i];
        if (truth->active[i]) {
            pauses[state.n_pauses++] = &rows[i];
        } else if (truth->lifted[i]) {
            lifted[state.n_lifted++] = pause_ids[i];
        }
    }
    state.generation = truth->generation;
    state.phase = state.n_pauses > 0 ? TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED
                                     : TIDEGATE__V1__SALE_PHASE__SALE_PHASE_OPEN;
    state.epoch = truth->epoch;
    state.control_sequence = truth->sequence;
    state.pauses = pauses;
    state.lifted = lifted;
    state.definition_digest = (ProtobufCBinaryData){sizeof(digest), digest};
    state.ledger_now_ms = truth->clock_ms;
    if (sales_state_take(&run->entry, &state, run->now)) {
        run->entry.defined = true; /* definitions are not the matter here */
        run->entry.sale.phase = run->entry.announced;
        note_taken(run, truth, generation);
    }
}

/* Bytes of any kind as a state: taken or not, the view stays within its bounds, and an own pause
 * goes only if this very state names it, or belongs to a later sale. */
static void wild_state_arrives(struct run *run, struct choice *choice)
{
    struct bus_arena arena = {0};
    struct sales_entry entry = run->entry; /* a copy: what follows must not depend on it */
    uint8_t body[512];
    size_t wanted = choice_below(choice, sizeof(body));
    size_t length = choice_take(choice, body, wanted);
    const Tidegate__V1__SaleState *state = (const Tidegate__V1__SaleState *)bus_unpack(
        &arena, &tidegate__v1__sale_state__descriptor, body, length);
    if (state == NULL || !sales_state_take(&entry, state, run->now)) {
        HOLDS(memcmp(&entry, &run->entry, sizeof(entry)) == 0);
    } else {
        HOLDS(entry.sale.generation >= run->entry.sale.generation);
        HOLDS(entry.sale.pause_count <= TG_MAX_PAUSES && entry.sale.lifted_count <= TG_MAX_LIFTED);
        size_t named = entry.sale.pause_count + entry.sale.lifted_count;
        HOLDS(entry.sale.own_pause_count + named >= run->entry.sale.own_pause_count ||
              entry.sale.generation > run->entry.sale.generation);
    }
    bus_arena_free(&arena);
}

/* Bytes of any kind as a definition: taken only within the bounds every daemon's tables have. */
static void wild_definition_arrives(struct run *run, struct choice *choice)
{
    struct bus_arena arena = {0};
    struct sales_entry entry = run->entry;
    const struct tg_sale *sale = &entry.sale;
    uint8_t body[512];
    size_t wanted = choice_below(choice, sizeof(body));
    size_t length = choice_take(choice, body, wanted);
    const Tidegate__V1__SaleDefinition *definition =
        (const Tidegate__V1__SaleDefinition *)bus_unpack(
            &arena, &tidegate__v1__sale_definition__descriptor, body, length);
    if (definition == NULL || !sales_definition_take(&entry, definition)) {
        HOLDS(memcmp(&entry, &run->entry, sizeof(entry)) == 0);
    } else {
        HOLDS(!entry.stated || sale->generation == run->entry.sale.generation);
        HOLDS(sale->item_count >= 1 && sale->item_count <= TG_MAX_ITEMS_PER_SALE);
        for (uint32_t i = 0; i < sale->item_count; i++) {
            HOLDS(tg_sale_name_valid(sale->items[i].sku, strlen(sale->items[i].sku)));
            HOLDS(sale->items[i].units >= 1 && sale->items[i].units <= TG_MAX_UNITS_PER_ITEM);
            HOLDS(tg_sale_item(sale, sale->items[i].sku) == (int)i);
        }
        HOLDS(sale->limit_per_buyer >= 1 && sale->limit_per_buyer <= TG_MAX_BUYER_LIMIT);
        HOLDS(sale->pace_min_milli <= sale->pace_max_milli && sale->shards == 1);
        HOLDS(sale->own_pause_count == run->entry.sale.own_pause_count);
        HOLDS(sale->pause_count == run->entry.sale.pause_count);
    }
    bus_arena_free(&arena);
}

/* ---- commands ---- */

static size_t pack_signed(const struct tg_signed_command *signed_command,
                          uint8_t out_bytes[SIGNED_BYTES_MAX])
{
    size_t length = tidegate__v1__signed_command__get_packed_size(&signed_command->message);
    HOLDS(length <= SIGNED_BYTES_MAX);
    return tidegate__v1__signed_command__pack(&signed_command->message, out_bytes);
}

/* A signed command's bytes reach the daemon. */
static int command_arrives(struct run *run, const uint8_t *bytes, size_t length)
{
    Tidegate__V1__Command *command = NULL;
    struct bus_arena arena = {0};
    const Tidegate__V1__SignedCommand *carrier = (const Tidegate__V1__SignedCommand *)bus_unpack(
        &arena, &tidegate__v1__signed_command__descriptor, bytes, length);
    int error = carrier == NULL ? TG_ERR_MALFORMED
                                : tg_command_verify(&operator_public, &invariant_public, carrier,
                                                    "sale", run->wall, &command);
    if (error == 0) {
        struct tg_sale before = run->entry.sale;
        if (command->kind != TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE) {
            HOLDS(strcmp(carrier->key_id, "operator") == 0); /* the checker may only pause */
        } else if (sales_pause_take(&run->entry, command) == TG_REASON_NONE) {
            HOLDS(run->entry.sale.own_pause_count >= before.own_pause_count);
        }
        tidegate__v1__command__free_unpacked(command, NULL);
    }
    bus_arena_free(&arena);
    return error;
}

/* Not of an earlier sale, not over, and not told by the state already: then it must be honoured. */
static void note_pause(struct run *run, size_t i, uint64_t meant_for)
{
    const struct tg_sale *sale = &run->entry.sale;
    bool told = false;
    for (uint32_t j = 0; j < sale->lifted_count; j++) {
        told = told || strcmp(sale->lifted[j], pause_ids[i]) == 0;
    }
    for (uint32_t j = 0; j < sale->pause_count; j++) {
        told = told || strcmp(sale->pauses[j].id, pause_ids[i]) == 0;
    }
    if (!told && meant_for >= sale->generation) {
        run->known_for[i] =
            run->known[i] && run->known_for[i] > meant_for ? run->known_for[i] : meant_for;
        run->known[i] = true;
    }
}

/* Damages a command where its meaning is; the signature then never fits. */
static void changed_command_arrives(struct run *run, struct choice *choice,
                                    const struct tg_signed_command *signed_command)
{
    struct tg_signed_command changed = *signed_command;
    char bytes[SIGNED_BYTES_MAX];
    uint8_t packed[SIGNED_BYTES_MAX];
    size_t length = signed_command->message.command.len;
    memcpy(bytes, signed_command->message.command.data, length);
    choice_damage(choice, bytes, &length, sizeof(bytes) / 2);
    if (length == signed_command->message.command.len &&
        memcmp(bytes, signed_command->message.command.data, length) == 0) {
        return;
    }
    struct sales_entry before = run->entry;
    changed.message.command = (ProtobufCBinaryData){length, (uint8_t *)bytes};
    changed.message.signature.data = changed.signature;
    HOLDS(command_arrives(run, packed, pack_signed(&changed, packed)) != 0);
    HOLDS(memcmp(&before, &run->entry, sizeof(before)) == 0);
}

static void command_is_sent(struct run *run, struct choice *choice)
{
    Tidegate__V1__Command command = TIDEGATE__V1__COMMAND__INIT;
    struct tg_signed_command signed_command;
    uint8_t packed[SIGNED_BYTES_MAX];
    size_t i = choice_below(choice, PAUSES);
    bool by_invariant = choice_below(choice, 2) == 1, changed = choice_below(choice, 4) == 0;
    command.command_id = pause_ids[i];
    command.sale = (char *)(choice_below(choice, 16) == 0 ? "other" : "sale");
    command.generation = choice_below(choice, run->ledger.generation + 2);
    command.kind =
        (Tidegate__V1__CommandKind)(choice_below(choice, 2) == 0 ? 3 /* pause */
                                                                 : choice_below(choice, 8));
    command.expires_at_ms = run->wall.ms + (int64_t)choice_below(choice, 40000) - 5000;
    command.cause = (char *)"test";
    HOLDS(tg_command_sign(by_invariant ? &invariant_key : &operator_key,
                          by_invariant ? "invariant" : "operator", &command, &signed_command) == 0);
    if (changed) {
        changed_command_arrives(run, choice, &signed_command);
    } else {
        int error = command_arrives(run, packed, pack_signed(&signed_command, packed));
        if (error == 0 && command.kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE) {
            note_pause(run, i, command.generation == 0 ? UINT64_MAX : command.generation);
        }
        HOLDS(error != 0 || strcmp(command.sale, "sale") == 0);
        HOLDS(error != 0 || command.expires_at_ms >= run->wall.ms - TG_MAX_CLOCK_SKEW_MS);
    }
    tg_command_free(&signed_command);
}

/* Bytes of any kind as a command: nobody here has the keys. */
static void wild_command_arrives(struct run *run, struct choice *choice)
{
    uint8_t bytes[SIGNED_BYTES_MAX];
    size_t wanted = choice_below(choice, SIGNED_BYTES_MAX);
    size_t length = choice_take(choice, bytes, wanted);
    struct sales_entry before = run->entry;
    HOLDS(command_arrives(run, bytes, length) != 0);
    HOLDS(memcmp(&before, &run->entry, sizeof(before)) == 0);
}

/* ---- a run ---- */

static void check(const struct run *run)
{
    if (tg_sale_phase(&run->entry.sale, run->now) == TG_PHASE_OPEN) {
        for (size_t i = 0; i < PAUSES; i++) {
            HOLDS(!run->known[i]);
        }
    }
}

static void step(struct run *run, struct choice *choice)
{
    switch (choice_below(choice, 9)) {
    case 0:
        ledger_moves(run, choice);
        break;
    case 1:
        ledger_tells(run);
        break;
    case 2:
    case 3:
        if (run->told_count > 0) {
            uint32_t kept = run->told_count < STATES ? run->told_count : STATES;
            state_arrives(run, &run->told[choice_below(choice, kept)]);
        }
        break;
    case 4:
        command_is_sent(run, choice);
        break;
    case 5:
        run->now.ms += (int64_t)choice_below(choice, 5000);
        run->wall.ms += (int64_t)choice_below(choice, 5000);
        break;
    case 6:
        wild_state_arrives(run, choice);
        break;
    case 7:
        wild_definition_arrives(run, choice);
        break;
    default:
        wild_command_arrives(run, choice);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct run run;
    struct choice choice = {bytes, size, 0};
    make_keys();
    memset(&run, 0, sizeof(run));
    run.ledger = (struct truth){.generation = 1, .epoch = 1, .sequence = 1, .clock_ms = 1};
    run.now.ms = 1000000;
    run.wall.ms = NOW_MS;
    memcpy(run.entry.sale.name, "sale", 5);
    for (int steps = 0; steps < STEPS_MAX && choice.at < choice.length; steps++) {
        step(&run, &choice);
        check(&run);
    }
    return 0;
}
