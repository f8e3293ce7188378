/* SPDX-License-Identifier: Apache-2.0
 * sale rebuild: shows the plan, gives the command, and follows the new gate until it is armed. It
 * may die anywhere: the ledger and the reserve daemons go on by themselves, and the same command
 * again begins a further epoch. */
#include "lib/io/now.h"
#include "tools/tidegatectl/control.h"
#include "tools/tidegatectl/incident.h"
#include "tools/tidegatectl/state.h"

#include <inttypes.h>
#include <string.h>

enum {
    STOCK_MS = 700, /* every reserve daemon tells it five times a second */
    LOOK_MS = 250,
    WAIT_MS = 120000,
    WAIT_MS_MAX = 3600000
};

/* One rebuild; one per process. */
static struct rebuild {
    const char *sale;
    const struct ctl_options *options;
    bool stock_heard, gate_armed;
    uint64_t gate_held, gate_free;
    uint64_t epoch, reservations;
    uint32_t pages, told_pages;
    bool verified, told_verified;
    int64_t began_ms;
    json_t *plan;
} rebuild;

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct rebuild *mine = context;
    const Tidegate__V1__Stock *stock = (const Tidegate__V1__Stock *)tg_bus_body(take_incoming);
    if (strcmp(stock->sale, mine->sale) == 0) {
        mine->stock_heard = true;
        mine->gate_armed = stock->armed;
        mine->gate_held = mine->gate_free = 0;
        for (size_t i = 0; i < stock->n_items; i++) {
            mine->gate_held += stock->items[i]->held;
            mine->gate_free += stock->items[i]->free;
        }
        if (stock->epoch == mine->epoch && stock->load_pages > mine->pages) {
            mine->pages = stock->load_pages;
        }
        mine->verified |= stock->epoch == mine->epoch && stock->load_verified;
    }
    tg_bus_release(take_incoming);
}

static bool stock_heard(const void *context)
{
    const struct rebuild *mine = context;
    return mine->stock_heard;
}

static bool never(const void *context)
{
    return false;
}

/* ---- the plan ---- */

/* What the gate holds and the ledger never recorded. Nobody was told of it: a 201 follows the
 * commit. */
static void lost_text(const struct rebuild *mine, const Tidegate__V1__IncidentReply *ledger,
                      char out_text[160])
{
    if (!mine->stock_heard || !mine->gate_armed) {
        (void)snprintf(out_text, 160,
                       "unknown, the gate cannot be read: holds that the ledger never recorded; "
                       "nobody was told of them");
        return;
    }
    const uint64_t lost =
        mine->gate_held > ledger->pending_units ? mine->gate_held - ledger->pending_units : 0;
    (void)snprintf(out_text, 160,
                   "about %" PRIu64 " units held at the gate that the ledger has not recorded; "
                   "nobody was told of them",
                   lost);
}

static void make_plan(struct rebuild *mine, const Tidegate__V1__SaleState *state,
                      const Tidegate__V1__IncidentReply *ledger)
{
    char lost[160];
    const uint64_t taken = ledger->pending_units + ledger->confirmed_units;
    const uint64_t unsold = ledger->units > taken ? ledger->units - taken : 0;
    mine->reservations = ledger->live_reservations + ledger->ended_reservations;
    lost_text(mine, ledger, lost);
    mine->plan =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "fromEpoch",
                  (json_int_t)state->epoch, "toEpoch", (json_int_t)state->epoch + 1, "units",
                  (json_int_t)ledger->units, "confirmedUnits", (json_int_t)ledger->confirmed_units,
                  "heldUnits", (json_int_t)ledger->pending_units, "freeUnits", (json_int_t)unsold,
                  "keptReservations", (json_int_t)ledger->live_reservations, "endedReservations",
                  (json_int_t)ledger->ended_reservations, "lost", lost);
    if (mine->options->format != CTL_TABLE) {
        return;
    }
    (void)printf("plan: the gate of %s is made anew from the ledger\n", mine->sale);
    (void)printf("  epoch    %" PRIu64 " -> %" PRIu64
                 "; what still travels under the old one is refused\n",
                 state->epoch, state->epoch + 1);
    (void)printf("  units    %" PRIu64 ": %" PRIu64 " confirmed, %" PRIu64 " held, %" PRIu64
                 " free\n",
                 ledger->units, ledger->confirmed_units, ledger->pending_units, unsold);
    (void)printf("  kept     %" PRIu64 " live reservations, and %" PRIu64
                 " ended ones so that they stay known\n",
                 ledger->live_reservations, ledger->ended_reservations);
    (void)printf("  lost     %s\n", lost);
    (void)printf("  written  tg:{%s.*}:%" PRIu64 ":* in Redis; the keys of epoch %" PRIu64
                 " stay and sell nothing\n",
                 mine->sale, state->epoch + 1, state->epoch);
    (void)printf("  then     the sale stays paused until `sale resume`, after two clean rounds\n");
}

static enum ctl_exit look(struct rebuild *mine, struct ctl_session *session)
{
    Tidegate__V1__SalesReply *known = NULL;
    Tidegate__V1__IncidentReply *ledger = NULL;
    enum ctl_exit code = ctl_session_sales(session, mine->sale, NULL, &known);
    if (code == CTL_DONE && known->n_states == 0) {
        (void)fprintf(stderr, "tidegatectl: there is no sale %s\n", mine->sale);
        code = CTL_REFUSED;
    }
    if (code == CTL_DONE) {
        code = ctl_incident_page(session, mine->sale, NULL, &ledger);
    }
    if (code == CTL_DONE) {
        if (tg_bus_serve(session->bus, TG_MESSAGE_GATE_STOCK, on_stock, mine) == 0) {
            (void)ctl_session_until(session, stock_heard, mine, STOCK_MS);
        }
        make_plan(mine, known->states[0], ledger);
    }
    if (ledger != NULL) {
        tidegate__v1__incident_reply__free_unpacked(ledger, NULL);
    }
    if (known != NULL) {
        tidegate__v1__sales_reply__free_unpacked(known, NULL);
    }
    return code;
}

/* ---- until it is armed ---- */

static void tell_progress(struct rebuild *mine)
{
    if (mine->pages > mine->told_pages) {
        const uint64_t rows = (uint64_t)mine->pages * TG_MAX_SNAPSHOT_PAGE;
        mine->told_pages = mine->pages;
        (void)fprintf(stderr, "rebuild %s: load: %" PRIu64 " of %" PRIu64 " reservations\n",
                      mine->sale, rows < mine->reservations ? rows : mine->reservations,
                      mine->reservations);
    }
    if (mine->verified && !mine->told_verified) {
        mine->told_verified = true;
        (void)fprintf(stderr, "rebuild %s: verify: loaded, counted and found right\n", mine->sale);
    }
}

/* The ledger's word on the sale, or false while it does not answer. */
static bool ask_state(struct ctl_session *session, const char *sale, bool *out_armed,
                      uint64_t *out_epoch)
{
    Tidegate__V1__SalesRequest request = TIDEGATE__V1__SALES_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.sale = (char *)sale;
    if (ctl_session_ask(session, TG_MESSAGE_LEDGER_SALES, NULL, &request.base, &reply) != 0) {
        return false;
    }
    Tidegate__V1__SalesReply *known = (Tidegate__V1__SalesReply *)reply;
    const bool found = known->n_states == 1;
    if (found) {
        *out_armed = known->states[0]->armed;
        *out_epoch = known->states[0]->epoch;
    }
    tidegate__v1__sales_reply__free_unpacked(known, NULL);
    return found;
}

static enum ctl_exit tell_end(struct rebuild *mine, bool armed, uint64_t epoch)
{
    const int64_t took_ms = tg_now_mono().ms - mine->began_ms;
    (void)json_object_set_new(mine->plan, "armed", json_boolean(armed));
    (void)json_object_set_new(mine->plan, "tookMs", json_integer(took_ms));
    if (armed) {
        mine->verified = true; /* nothing is armed that was not */
        tell_progress(mine);
        (void)fprintf(stderr,
                      "rebuild %s: arm: the gate of epoch %" PRIu64 " is armed after %.1f s; next: "
                      "tidegatectl sale resume %s --wait 30s\n",
                      mine->sale, epoch, (double)took_ms / 1000, mine->sale);
        return CTL_DONE;
    }
    if (epoch != mine->epoch) {
        (void)fprintf(stderr, "tidegatectl: another rebuild has begun epoch %" PRIu64 "\n", epoch);
        return CTL_REFUSED;
    }
    (void)fprintf(stderr,
                  "tidegatectl: the gate of epoch %" PRIu64
                  " is not armed yet: is a reserve daemon ready, and its Redis a primary "
                  "with maxmemory-policy noeviction? It goes on by itself; the same command "
                  "begins anew\n",
                  epoch);
    return CTL_UNREACHABLE;
}

static enum ctl_exit follow(struct ctl_session *session, const struct ctl_wish *wish,
                            uint64_t epoch)
{
    struct rebuild *mine = &rebuild;
    const int64_t deadline_ms = tg_now_mono().ms + wish->follow_ms;
    bool armed = false;
    mine->epoch = epoch;
    if (tg_bus_serve(session->bus, TG_MESSAGE_GATE_STOCK, on_stock, mine) != 0) {
        return CTL_UNREACHABLE;
    }
    do {
        (void)ctl_session_until(session, never, NULL, LOOK_MS);
        tell_progress(mine);
        if (!ask_state(session, mine->sale, &armed, &epoch)) {
            armed = false;
        }
        mine->epoch = mine->epoch != 0 ? mine->epoch : epoch;
    } while (!armed && epoch == mine->epoch && tg_now_mono().ms < deadline_ms);
    return tell_end(mine, armed && epoch == mine->epoch, epoch);
}

enum ctl_exit ctl_rebuild(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    struct rebuild *mine = &rebuild;
    struct ctl_session session;
    struct ctl_wish wish = {.verb = "rebuild",
                            .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_REBUILD,
                            .sale = arguments->positional[0],
                            .cause = arguments->cause != NULL ? arguments->cause : "operator",
                            .plan = arguments->dry_run,
                            .follow_ms = WAIT_MS,
                            .follow = follow};
    mine->sale = wish.sale;
    mine->options = options;
    if (!ctl_sale_name(wish.sale) || !ctl_cause_good(arguments->cause) ||
        (arguments->wait != NULL &&
         !ctl_duration("--wait", arguments->wait, 0, WAIT_MS_MAX, &wish.follow_ms))) {
        return CTL_USAGE;
    }
    if (!ctl_needs_keys(options)) {
        return CTL_SETTINGS;
    }
    enum ctl_exit code = ctl_session_open(options, false, &session);
    if (code != CTL_DONE) {
        return code;
    }
    mine->began_ms = tg_now_mono().ms;
    code = look(mine, &session);
    ctl_session_close(&session);
    if (code == CTL_DONE) {
        wish.changes = mine->plan;
        wish.changes_name = "rebuild";
        code = ctl_control(options, &wish);
    }
    json_decref(mine->plan);
    return code;
}
