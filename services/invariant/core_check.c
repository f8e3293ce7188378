/* SPDX-License-Identifier: Apache-2.0 */
#include "services/invariant/core_check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[INVARIANT_CHECKS] = {"G", "C0", "C1", "C2", "A", "B",
                                                    "C", "D",  "E",  "U",  "L"};

const char *invariant_check_name(enum invariant_check check)
{
    assert(check < INVARIANT_CHECKS);
    return names[check];
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static uint64_t big_endian(const uint8_t bytes[8])
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

/* As memcmp, which costs three times as much for so few bytes: a round compares millions. */
static int order_ids(const uint8_t a[INVARIANT_ID_BYTES], const uint8_t b[INVARIANT_ID_BYTES])
{
    const int first = order(big_endian(a), big_endian(b));
    return first != 0 ? first : order(big_endian(a + 8), big_endian(b + 8));
}

int invariant_by_entry_id(const void *a, const void *b)
{
    return order_ids(((const struct invariant_entry *)a)->id,
                     ((const struct invariant_entry *)b)->id);
}

int invariant_by_unit(const void *a, const void *b)
{
    const struct invariant_holding *x = a, *y = b;
    return x->item != y->item ? order(x->item, y->item) : order(x->unit, y->unit);
}

int invariant_by_slot(const void *a, const void *b)
{
    const struct invariant_holding *x = a, *y = b;
    return x->user_tag != y->user_tag ? order(x->user_tag, y->user_tag) : order(x->slot, y->slot);
}

void invariant_sort(struct invariant_entry *entries, size_t count)
{
    if (count > 1) {
        qsort(entries, count, sizeof entries[0], invariant_by_entry_id);
    }
}

size_t invariant_fold(struct invariant_entry *entries, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(entries, count, sizeof entries[0], invariant_by_entry_id);
    size_t last = 0;
    for (size_t i = 1; i < count; i++) {
        struct invariant_entry *kept = &entries[last];
        if (invariant_by_entry_id(kept, &entries[i]) != 0) {
            entries[++last] = entries[i];
            continue;
        }
        const uint32_t places = kept->places | entries[i].places;
        if (kept->unit_count == 0) {
            *kept = entries[i];
        }
        kept->places = places;
    }
    return last + 1;
}

static int by_row_id(const void *a, const void *b)
{
    return order_ids(((const struct invariant_row *)a)->id, ((const struct invariant_row *)b)->id);
}

size_t invariant_fold_rows(struct invariant_row *rows, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(rows, count, sizeof rows[0], by_row_id);
    size_t last = 0;
    for (size_t i = 1; i < count; i++) {
        if (by_row_id(&rows[last], &rows[i]) != 0) {
            rows[++last] = rows[i];
            continue;
        }
        rows[last].units_tag += rows[i].units_tag;
        rows[last].slots |= rows[i].slots;
        rows[last].unit_count += rows[i].unit_count;
        rows[last].live_count += rows[i].live_count;
    }
    return last + 1;
}

uint64_t invariant_units_tag(uint64_t tag, uint32_t item, uint32_t unit)
{
    /* Each unit is spread over 64 bits before the sum, so that {1,4} and {2,3} differ. */
    uint64_t x = ((uint64_t)item << 32 | unit) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return tag + (x ^ (x >> 31));
}

uint64_t invariant_free_tag(uint64_t tag, uint32_t item, const uint8_t *map, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        for (uint32_t bit = 0; map[i] != 0 && bit < 8; bit++) {
            if ((map[i] & (0x80u >> bit)) != 0) {
                tag = invariant_units_tag(tag, item, (uint32_t)(i * 8) + bit);
            }
        }
    }
    return tag;
}

/* The entry of an id in a sorted array, NULL when absent; ids come in order, and `at` walks on. */
static const struct invariant_entry *walk_to(const struct invariant_entry *entries, size_t count,
                                             size_t *at, const uint8_t id[INVARIANT_ID_BYTES])
{
    int direction = -1;
    while (*at < count && (direction = order_ids(entries[*at].id, id)) < 0) {
        (*at)++;
    }
    return *at < count && direction == 0 ? &entries[*at] : NULL;
}

static void fail(struct invariant_judgement *judgement, enum invariant_check check,
                 const char *note, const uint8_t *id_or_null)
{
    struct invariant_finding *finding = &judgement->findings[check];
    if (finding->failures++ == 0) {
        finding->note = note;
    }
    if (id_or_null && finding->id_count < INVARIANT_IDS_TOLD) {
        memcpy(finding->ids[finding->id_count++], id_or_null, INVARIANT_ID_BYTES);
    }
    judgement->outcome = INVARIANT_ALARM;
}

static void make_void(struct invariant_judgement *judgement, const char *note)
{
    judgement->outcome = INVARIANT_VOID;
    judgement->void_note = note;
}

/* ---- the frame: same epoch, arming and shards in R1, P and R2 ---- */

static bool same_arming(const struct invariant_look *look, const struct invariant_look *other)
{
    return look->present && look->readable && look->armed &&
           strcmp(look->run_id, other->run_id) == 0 &&
           strcmp(look->replication_id, other->replication_id) == 0;
}

/* True when the round can be judged at all; otherwise it is void. */
static bool framed(const struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    const struct invariant_ledger *ledger = &facts->ledger;
    if (ledger->epoch != facts->epoch || ledger->generation != facts->generation ||
        !ledger->armed) {
        make_void(judgement, "epoch or arming changed during the round");
    } else if (ledger->shards != facts->shards) {
        make_void(judgement, "shard set changed during the round");
    } else if (ledger->closed) {
        make_void(judgement, "sale closed");
    } else {
        return true;
    }
    return false;
}

/* The ledger said "armed" before R1 and still says so for the same epoch in P: a gate that is not
 * there, or armed on another Redis, in between was lost. Keys of an epoch are removed only after
 * the ledger left it. */
static void check_g(const struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    const struct invariant_ledger *ledger = &facts->ledger;
    if (strcmp(facts->server.run_id, ledger->run_id) != 0) {
        fail(judgement, INVARIANT_CHECK_G, "Redis run id is not the armed one", NULL);
    }
    if (strcmp(facts->server.replication_id, ledger->replication_id) != 0) {
        fail(judgement, INVARIANT_CHECK_G, "Redis replication id is not the armed one", NULL);
    }
    if (!facts->server.primary) {
        fail(judgement, INVARIANT_CHECK_G, "Redis is not a primary", NULL);
    }
    if (facts->server.evicts) {
        fail(judgement, INVARIANT_CHECK_G, "Redis may evict keys", NULL);
    }
    for (uint32_t i = 0; i < facts->looked; i++) {
        const struct invariant_look *look = &facts->look1[i];
        if (!look->present || (look->readable && !look->armed)) {
            fail(judgement, INVARIANT_CHECK_G, "the armed gate is gone", NULL);
        } else if (look->readable && (strcmp(look->run_id, ledger->run_id) != 0 ||
                                      strcmp(look->replication_id, ledger->replication_id) != 0)) {
            fail(judgement, INVARIANT_CHECK_G, "the gate says it was armed on another Redis", NULL);
        }
    }
    if (ledger->in_recovery) {
        fail(judgement, INVARIANT_CHECK_G, "PostgreSQL is not a primary", NULL);
    }
    if (ledger->system_identifier[0] != '\0' &&
        strcmp(ledger->system_identifier, ledger->system_identifier_now) != 0) {
        fail(judgement, INVARIANT_CHECK_G, "PostgreSQL system identifier is not the armed one",
             NULL);
    }
    if (ledger->timeline[0] != '\0' && strcmp(ledger->timeline, ledger->timeline_now) != 0) {
        fail(judgement, INVARIANT_CHECK_G, "PostgreSQL timeline is not the armed one", NULL);
    }
}

/* ---- C0, C1: one look is one atomic step ---- */

static void check_item(const struct invariant_item *item, struct invariant_judgement *judgement)
{
    uint64_t sum = 0;
    if (__builtin_add_overflow(item->stock, item->held, &sum) ||
        __builtin_add_overflow(sum, item->settled, &sum) || sum != item->initial) {
        fail(judgement, INVARIANT_CHECK_C0, "stock + held + settled is not initial", NULL);
    }
    if (item->free_bits != item->stock) {
        fail(judgement, INVARIANT_CHECK_C1, "free units are not as many as the stock", NULL);
    }
}

static void check_look(const struct invariant_look *look, struct invariant_judgement *judgement)
{
    if (!look->present) {
        return;
    }
    if (!look->readable) {
        fail(judgement, INVARIANT_CHECK_C1, "the gate's counters cannot be read", NULL);
        return;
    }
    for (uint32_t i = 0; i < look->item_count; i++) {
        check_item(&look->items[i], judgement);
    }
}

static void check_gate(const struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    uint64_t initial[TG_MAX_ITEMS_PER_SALE] = {0};
    bool comparable = facts->looked == facts->shards;
    if (facts->garbage) {
        fail(judgement, INVARIANT_CHECK_C1, "a key of the gate is of another type", NULL);
    }
    for (uint32_t i = 0; i < facts->looked; i++) {
        const struct invariant_look *look = &facts->look1[i];
        check_look(look, judgement);
        comparable &=
            look->present && look->readable && look->item_count == facts->ledger.item_count;
        for (uint32_t item = 0; comparable && item < look->item_count; item++) {
            initial[item] += look->items[item].initial;
        }
        if (look->present && look->readable && look->item_count != facts->ledger.item_count) {
            fail(judgement, INVARIANT_CHECK_C1, "gate and ledger have different items", NULL);
        }
    }
    for (uint32_t item = 0; comparable && item < facts->ledger.item_count; item++) {
        if (initial[item] != facts->ledger.units[item]) {
            fail(judgement, INVARIANT_CHECK_C1, "the gate's units are not the definition's", NULL);
        }
    }
    if (facts->log_torn) {
        fail(judgement, INVARIANT_CHECK_C1, "the log is torn or gives another stock", NULL);
    }
    for (size_t i = 0; i < facts->r1_count; i++) {
        if (facts->r1[i].places & INVARIANT_GARBLED) {
            fail(judgement, INVARIANT_CHECK_C1, "a hold's record cannot be read", facts->r1[i].id);
        }
    }
    for (size_t i = 0; i < facts->claim_count; i++) {
        if (facts->claims[i].places & INVARIANT_GARBLED) {
            fail(judgement, INVARIANT_CHECK_C1, "a buyer's row cannot be read", NULL);
        }
    }
}

/* ---- C2: the ledger against itself, recounted without its indexes ---- */

/* An empty sale has no array at all, which qsort may not be given. */
static void sort_holdings(struct invariant_holding *holdings, size_t count,
                          int (*order_of)(const void *a, const void *b))
{
    if (count > 1) {
        qsort(holdings, count, sizeof holdings[0], order_of);
    }
}

static void check_holdings(struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    struct invariant_holding *holdings = facts->holdings;
    const size_t count = facts->holding_count;
    uint64_t live[TG_MAX_ITEMS_PER_SALE] = {0};
    sort_holdings(holdings, count, invariant_by_unit);
    for (size_t i = 0; i < count; i++) {
        const struct invariant_holding *holding = &holdings[i];
        if (holding->item >= facts->ledger.item_count ||
            holding->unit >= facts->ledger.units[holding->item]) {
            fail(judgement, INVARIANT_CHECK_C2, "a unit that does not exist is held", holding->id);
            continue;
        }
        live[holding->item]++;
        if (i > 0 && invariant_by_unit(&holdings[i - 1], holding) == 0) {
            fail(judgement, INVARIANT_CHECK_C2, "a unit has two live owners", holding->id);
        }
    }
    sort_holdings(holdings, count, invariant_by_slot);
    for (size_t i = 1; i < count; i++) {
        if (invariant_by_slot(&holdings[i - 1], &holdings[i]) == 0) {
            fail(judgement, INVARIANT_CHECK_C2, "a buyer's slot is used twice", holdings[i].id);
        }
    }
    for (uint32_t item = 0; item < facts->ledger.item_count; item++) {
        if (live[item] > facts->ledger.units[item]) {
            judgement->oversold += live[item] - facts->ledger.units[item];
            fail(judgement, INVARIANT_CHECK_C2, "more live holdings than units", NULL);
        }
    }
    if (!facts->ledger.one_owner) {
        fail(judgement, INVARIANT_CHECK_C2, "the index that lets a unit have one owner is gone",
             NULL);
    }
    if (!facts->ledger.one_slot) {
        fail(judgement, INVARIANT_CHECK_C2, "the index that lets a slot be used once is gone",
             NULL);
    }
    if (facts->ledger.holdings_counted != facts->ledger.holdings_joined) {
        fail(judgement, INVARIANT_CHECK_C2, "holdings without their reservation", NULL);
    }
}

static void check_rows(const struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    for (size_t i = 0; i < facts->row_count; i++) {
        const struct invariant_row *row = &facts->rows[i];
        const bool ended = row->state == INVARIANT_EXPIRED || row->state == INVARIANT_CANCELLED;
        if (row->restocked && !ended) {
            fail(judgement, INVARIANT_CHECK_C2, "restocked without a verdict", row->id);
        }
        if (ended && row->live_count > 0) {
            fail(judgement, INVARIANT_CHECK_C2, "an ended reservation holds units", row->id);
        }
        if (!ended && (row->unit_count == 0 || row->live_count != row->unit_count)) {
            fail(judgement, INVARIANT_CHECK_C2, "a live reservation lacks its units", row->id);
        }
    }
}

/* ---- A, B, C, D, E, U: gate against ledger ---- */

/* What the ledger noted as done was done before, and the gate never goes back: a gate that is
 * behind it was replaced by an older state of itself. */
static void check_done(const struct invariant_row *row, const struct invariant_entry *entry,
                       struct invariant_judgement *judgement)
{
    const uint32_t settled = row->state == INVARIANT_CONFIRMED ? INVARIANT_SETTLED : 0;
    if (row->obeyed && !(entry->places & (INVARIANT_RELEASED | settled))) {
        fail(judgement, INVARIANT_CHECK_D, "obeyed once, undone at the gate", row->id);
    }
}

static void check_known(const struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    const uint32_t anywhere = INVARIANT_HELD | INVARIANT_SETTLED | INVARIANT_RELEASED;
    size_t at_row = 0, at_unacked = 0;
    for (size_t i = 0; i < facts->row_count; i++) {
        const struct invariant_row *row = &facts->rows[i];
        const struct invariant_entry *entry = walk_to(facts->r2, facts->r2_count, &at_row, row->id);
        if (!entry || !(entry->places & anywhere)) {
            fail(judgement, INVARIANT_CHECK_A, "recorded in the ledger, unknown to the gate",
                 row->id);
            continue;
        }
        check_done(row, entry, judgement);
        const bool units_differ =
            row->unit_count > 0 && entry->unit_count > 0 &&
            (row->unit_count != entry->unit_count || row->units_tag != entry->units_tag ||
             row->slots != entry->slots);
        if (units_differ || (entry->unit_count > 0 && row->user_tag != entry->user_tag)) {
            fail(judgement, INVARIANT_CHECK_U, "gate and ledger disagree on units, slots or user",
                 row->id);
        }
    }
    for (size_t i = 0; i < facts->r1_count; i++) {
        const struct invariant_entry *entry = &facts->r1[i];
        if ((entry->places & INVARIANT_UNACKED) &&
            !walk_to(facts->r2, facts->r2_count, &at_unacked, entry->id)) {
            fail(judgement, INVARIANT_CHECK_A, "not acknowledged and no longer held", entry->id);
        }
    }
}

static void check_entry(const struct invariant_entry *entry,
                        const struct invariant_row *row_or_null,
                        struct invariant_judgement *judgement)
{
    const bool ended = row_or_null && (row_or_null->state == INVARIANT_EXPIRED ||
                                       row_or_null->state == INVARIANT_CANCELLED);
    const bool paid = row_or_null && (row_or_null->state == INVARIANT_CONFIRMED ||
                                      row_or_null->state == INVARIANT_CANCELLED);
    if ((entry->places & INVARIANT_RELEASED) && !ended) {
        fail(judgement, INVARIANT_CHECK_B, "given back at the gate without a verdict", entry->id);
    }
    if ((entry->places & INVARIANT_SETTLED) && !paid) {
        fail(judgement, INVARIANT_CHECK_C, "sold at the gate without a confirmation", entry->id);
    }
    if ((entry->places & INVARIANT_HELD) && !(entry->places & INVARIANT_UNACKED) && !row_or_null) {
        fail(judgement, INVARIANT_CHECK_E, "acknowledged at the gate, not in the ledger",
             entry->id);
    }
}

/* One walk over both sorted arrays. */
static void check_verdicts(const struct invariant_facts *facts,
                           struct invariant_judgement *judgement)
{
    size_t at = 0;
    for (size_t i = 0; i < facts->r1_count; i++) {
        const uint8_t *id = facts->r1[i].id;
        while (at < facts->row_count && order_ids(facts->rows[at].id, id) < 0) {
            at++;
        }
        const bool found = at < facts->row_count && order_ids(facts->rows[at].id, id) == 0;
        check_entry(&facts->r1[i], found ? &facts->rows[at] : NULL, judgement);
    }
}

/* ---- C1 again: a gate that stood still ---- */

/* Every unit of the sale once. */
static uint64_t all_units_tag(const struct invariant_ledger *ledger)
{
    uint64_t tag = 0;
    for (uint32_t item = 0; item < ledger->item_count; item++) {
        for (uint32_t unit = 0; unit < ledger->units[item]; unit++) {
            tag = invariant_units_tag(tag, item, unit);
        }
    }
    return tag;
}

/* Whatever takes, sells or gives back is logged. Where no log grew between the looks, R2 is not a
 * walk beside a moving gate but all there is of it: the counters must say the same, and every unit
 * is free or somebody's. */
static void check_still(const struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    uint64_t held = 0, settled = 0, units_tag = facts->free_tag;
    for (uint32_t i = 0; i < facts->shards; i++) {
        const struct invariant_look *look = &facts->look2[i];
        if (look->sequence != facts->look1[i].sequence) {
            return;
        }
        for (uint32_t item = 0; item < look->item_count; item++) {
            held += look->items[item].held;
            settled += look->items[item].settled;
        }
    }
    for (size_t i = 0; i < facts->r2_count; i++) {
        const struct invariant_entry *entry = &facts->r2[i];
        if (entry->places & INVARIANT_GARBLED) {
            return; /* nobody knows how many units that one has */
        }
        held -= entry->places & INVARIANT_HELD ? entry->unit_count : 0;
        settled -= entry->places & INVARIANT_SETTLED ? entry->unit_count : 0;
        units_tag += entry->places & (INVARIANT_HELD | INVARIANT_SETTLED) ? entry->units_tag : 0;
    }
    if (held != 0 || settled != 0) {
        fail(judgement, INVARIANT_CHECK_C1, "held or settled is not what the holds add up to",
             NULL);
    } else if (units_tag != all_units_tag(&facts->ledger)) {
        fail(judgement, INVARIANT_CHECK_C1, "a unit is free and taken, or neither", NULL);
    }
}

/* ---- L: the rows of buyers against the gate's own holds ---- */

static bool claims_it(const struct invariant_entry *claim, const struct invariant_entry *entry)
{
    return (entry->places & INVARIANT_GARBLED) ||
           (claim->user_tag == entry->user_tag && claim->slots == entry->slots);
}

/* Read between R1 and R2: whatever a buyer's row names is known to R2 and was not given back in R1;
 * whatever R1 and R2 both found live was live, and named, in between. */
static void check_claims(const struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    const uint32_t live = INVARIANT_HELD | INVARIANT_SETTLED;
    size_t at_entry = 0, at_later = 0, at_claim = 0;
    for (size_t i = 0; i < facts->claim_count; i++) {
        const struct invariant_entry *claim = &facts->claims[i];
        const struct invariant_entry *entry =
            walk_to(facts->r2, facts->r2_count, &at_entry, claim->id);
        if (!(claim->places & INVARIANT_GARBLED) && (!entry || !claims_it(claim, entry))) {
            fail(judgement, INVARIANT_CHECK_L, "a buyer's row names what is not his", claim->id);
        }
    }
    for (size_t i = 0; i < facts->r1_count; i++) {
        const struct invariant_entry *entry = &facts->r1[i];
        const struct invariant_entry *later =
            walk_to(facts->r2, facts->r2_count, &at_later, entry->id);
        const bool named = walk_to(facts->claims, facts->claim_count, &at_claim, entry->id) != NULL;
        if ((entry->places & INVARIANT_RELEASED) && named) {
            fail(judgement, INVARIANT_CHECK_L, "given back, and still in a buyer's row", entry->id);
        } else if ((entry->places & live) && later && (later->places & live) && !named) {
            fail(judgement, INVARIANT_CHECK_L, "held, and in no buyer's row", entry->id);
        }
    }
}

/* ---- the published sum ---- */

static void add_up(const struct invariant_facts *facts, struct invariant_judgement *judgement)
{
    const struct invariant_look *looks = facts->complete ? facts->look2 : facts->look1;
    const uint32_t count = facts->complete ? facts->shards : facts->looked;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t item = 0; looks[i].readable && item < looks[i].item_count; item++) {
            judgement->stock += looks[i].items[item].stock;
            judgement->initial += looks[i].items[item].initial;
        }
    }
    size_t at = 0;
    for (size_t i = 0; i < facts->row_count; i++) {
        const struct invariant_row *row = &facts->rows[i];
        judgement->pending += row->state == INVARIANT_PENDING ? row->live_count : 0;
        judgement->confirmed += row->state == INVARIANT_CONFIRMED ? row->live_count : 0;
    }
    for (size_t i = 0; i < facts->r2_count; i++) {
        const struct invariant_entry *entry = &facts->r2[i];
        while (at < facts->row_count && order_ids(facts->rows[at].id, entry->id) < 0) {
            at++;
        }
        const bool found = at < facts->row_count && order_ids(facts->rows[at].id, entry->id) == 0;
        const uint32_t live = found ? facts->rows[at].live_count : 0;
        if (entry->places & INVARIANT_RELEASED) {
            judgement->release_pending += live;
        } else if (live == 0) {
            judgement->in_flight += entry->unit_count;
        }
    }
}

void invariant_judge(struct invariant_facts *facts, struct invariant_judgement *out_judgement)
{
    *out_judgement = (struct invariant_judgement){.outcome = INVARIANT_CLEAN};
    if (!framed(facts, out_judgement)) {
        return;
    }
    check_g(facts, out_judgement);
    check_gate(facts, out_judgement);
    check_holdings(facts, out_judgement);
    check_rows(facts, out_judgement);
    add_up(facts, out_judgement);
    if (!facts->complete || out_judgement->findings[INVARIANT_CHECK_G].failures > 0) {
        if (out_judgement->outcome == INVARIANT_CLEAN) {
            make_void(out_judgement, "the round was not finished");
        }
        return; /* what such a gate says of reservations proves nothing */
    }
    for (uint32_t i = 0; i < facts->shards; i++) {
        if (!same_arming(&facts->look2[i], &facts->look1[i])) {
            if (out_judgement->outcome == INVARIANT_CLEAN) {
                make_void(out_judgement, "the gate's arming changed during the round");
            }
            return;
        }
    }
    check_still(facts, out_judgement);
    check_known(facts, out_judgement);
    check_verdicts(facts, out_judgement);
    check_claims(facts, out_judgement);
}
