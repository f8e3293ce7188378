/* SPDX-License-Identifier: Apache-2.0
 * warm: waits until everything a sale needs at its opening is in place, and names what is not. It
 * listens to what daemons tell of themselves: whoever tells has its keys and its connections. Who
 * is there at all is asked: the sweeper tells nothing by itself, and no edge may be missed. */
#include "lib/io/now.h"
#include "tidegate/v1/admission.pb-c.h"
#include "tidegate/v1/common.pb-c.h"
#include "tidegate/v1/queue.pb-c.h"
#include "tools/tidegatectl/session.h"

#include <inttypes.h>
#include <string.h>

enum {
    WAIT_MS = 30000,
    WAIT_MS_MAX = 600000,
    TELL_MS = 500,
    ASK_MS = 1000,
    EDGES_MAX = 64,
    NAME_BYTES = 33
};

enum warm_part {
    WARM_LEDGER,
    WARM_RESERVE,
    WARM_GATE,
    WARM_PROOF,
    WARM_SWEEPER,
    WARM_QUEUE,
    WARM_ADMISSION,
    WARM_EDGES,
    WARM_BOARDS,
    WARM_PARTS
};

static const struct {
    const char *name;
    const char *there;
    const char *missing;
} parts[WARM_PARTS] = {
    [WARM_LEDGER] = {"ledger", "tells its state and load",
                     "no ledger tells a load: is it running, "
                     "and does PostgreSQL answer it?"},
    [WARM_RESERVE] = {"reserve", "tells its load", "no reserve tells a load: is it running?"},
    [WARM_GATE] = {"gate", "loaded and armed, scripts known",
                   "not armed: reserve loads it from the ledger; is Redis there?"},
    [WARM_PROOF] = {"proof", "attested",
                    "not proved right: is invariant running, and do both "
                    "stores answer it?"},
    [WARM_SWEEPER] = {"sweeper", "gives lapsed units back",
                      "no sweeper answers that it is ready: lapsed units would not come back"},
    [WARM_QUEUE] = {"queue", "tells boards", "no board: is a queue running and active?"},
    [WARM_ADMISSION] = {"admission", "tells a pace, has its keys",
                        "no pace: is admission running and active?"},
    [WARM_EDGES] = {"edges", "know the sale", "no edge tells a load: is one running?"},
    [WARM_BOARDS] = {"boards", "every edge has the queue's board",
                     "an edge has not seen the board"},
};

struct warm_edge {
    char name[NAME_BYTES];
    bool has_board;
};

struct warm {
    const struct ctl_options *options;
    const char *sale;
    struct ctl_session session;
    uint64_t generation;
    bool there[WARM_PARTS];
    bool asking, asked; /* who is there */
    size_t edge_count;
    struct warm_edge edges[EDGES_MAX];
};

static bool is_ours(const struct warm *warm, const struct tg_bus_incoming *incoming)
{
    return strcmp(tg_bus_sale(incoming), warm->sale) == 0;
}

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct warm *warm = context;
    const Tidegate__V1__Stock *stock = (const Tidegate__V1__Stock *)tg_bus_body(take_incoming);
    if (is_ours(warm, take_incoming)) {
        warm->there[WARM_GATE] = stock->armed;
        warm->there[WARM_PROOF] = stock->armed && stock->attested_until_ms > stock->gate_now_ms;
    }
    tg_bus_release(take_incoming);
}

static void on_board(void *context, struct tg_bus_incoming *take_incoming)
{
    struct warm *warm = context;
    const Tidegate__V1__Board *board = (const Tidegate__V1__Board *)tg_bus_body(take_incoming);
    if (is_ours(warm, take_incoming) && board->generation == warm->generation) {
        warm->there[WARM_QUEUE] = true;
    }
    tg_bus_release(take_incoming);
}

static void on_pace(void *context, struct tg_bus_incoming *take_incoming)
{
    struct warm *warm = context;
    if (is_ours(warm, take_incoming)) {
        warm->there[WARM_ADMISSION] = true;
    }
    tg_bus_release(take_incoming);
}

static void on_load(void *context, struct tg_bus_incoming *take_incoming)
{
    struct warm *warm = context;
    const Tidegate__V1__Load *load = (const Tidegate__V1__Load *)tg_bus_body(take_incoming);
    if (is_ours(warm, take_incoming)) {
        warm->there[WARM_LEDGER] |= strcmp(load->daemon, "ledger") == 0;
        warm->there[WARM_RESERVE] |= strcmp(load->daemon, "reserve") == 0;
        warm->there[WARM_EDGES] |= strcmp(load->daemon, "edge") == 0;
    }
    tg_bus_release(take_incoming);
}

static struct warm_edge *edge_row(struct warm *warm, const char *name)
{
    for (size_t i = 0; i < warm->edge_count; i++) {
        if (strcmp(warm->edges[i].name, name) == 0) {
            return &warm->edges[i];
        }
    }
    if (warm->edge_count == EDGES_MAX || strlen(name) >= NAME_BYTES) {
        return NULL;
    }
    struct warm_edge *edge = &warm->edges[warm->edge_count++];
    memcpy(edge->name, name, strlen(name) + 1);
    return edge;
}

static bool all_have_boards(const struct warm *warm)
{
    for (size_t i = 0; i < warm->edge_count; i++) {
        if (!warm->edges[i].has_board) {
            return false;
        }
    }
    return warm->edge_count > 0;
}

static void on_presence(void *context, struct tg_bus_incoming *take_incoming)
{
    struct warm *warm = context;
    const Tidegate__V1__Presence *presence =
        (const Tidegate__V1__Presence *)tg_bus_body(take_incoming);
    struct warm_edge *edge = is_ours(warm, take_incoming) ? edge_row(warm, presence->edge) : NULL;
    if (edge != NULL) {
        edge->has_board = presence->board_term > 0 && presence->generation == warm->generation;
        warm->there[WARM_BOARDS] = all_have_boards(warm);
    }
    tg_bus_release(take_incoming);
}

static void on_examined(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct warm *warm = context;
    if (status != 0) {
        warm->asking = false;
        warm->asked = true;
        return;
    }
    const Tidegate__V1__ExamineReply *told = (const Tidegate__V1__ExamineReply *)reply;
    warm->there[WARM_SWEEPER] |= strcmp(told->daemon, "sweeper") == 0 && told->not_ready[0] == '\0';
    if (strcmp(told->daemon, "edge") == 0) {
        (void)edge_row(warm, told->instance);
        warm->there[WARM_BOARDS] = all_have_boards(warm);
    }
}

/* One round at a time, until a sweeper is ready. */
static void ask_who_is_there(struct warm *warm)
{
    Tidegate__V1__ExamineRequest request = TIDEGATE__V1__EXAMINE_REQUEST__INIT;
    if (!warm->asking && !warm->there[WARM_SWEEPER]) {
        warm->asking = tg_bus_ask_all(warm->session.bus, TG_MESSAGE_EXAMINE, NULL, &request.base,
                                      ASK_MS, on_examined, warm, 0) == 0;
    }
}

static bool all_there(const void *context)
{
    const struct warm *warm = context;
    for (size_t i = 0; i < WARM_PARTS; i++) {
        if (!warm->there[i]) {
            return false;
        }
    }
    return warm->asked;
}

static int listen_to_all(struct warm *warm)
{
    static const struct tg_bus_subject heard[] = {
        {TG_MESSAGE_GATE_STOCK, on_stock},       {TG_MESSAGE_QUEUE_BOARD, on_board},
        {TG_MESSAGE_ADMISSION_PACE, on_pace},    {TG_MESSAGE_LOAD_EDGE, on_load},
        {TG_MESSAGE_LOAD_RESERVE, on_load},      {TG_MESSAGE_LOAD_LEDGER, on_load},
        {TG_MESSAGE_QUEUE_PRESENCE, on_presence}};
    return tg_bus_serve_all(warm->session.bus, heard, sizeof(heard) / sizeof(heard[0]), warm);
}

/* Progress for people on stderr: what has come since the last look. */
static void wait_for_all(struct warm *warm, int64_t wait_ms)
{
    bool told[WARM_PARTS] = {false};
    int64_t deadline_ms = tg_now_mono().ms + wait_ms;
    while (!all_there(warm) && tg_now_mono().ms < deadline_ms) {
        ask_who_is_there(warm);
        (void)ctl_session_until(&warm->session, all_there, warm, TELL_MS);
        for (size_t i = 0; warm->options->format == CTL_TABLE && i < WARM_PARTS; i++) {
            if (warm->there[i] && !told[i]) {
                (void)fprintf(stderr, "  %-10s %s\n", parts[i].name, parts[i].there);
                told[i] = true;
            }
        }
    }
}

static enum ctl_exit report(const struct warm *warm)
{
    bool ready = all_there(warm);
    json_t *missing = json_array();
    for (size_t i = 0; i < WARM_PARTS; i++) {
        if (!warm->there[i]) {
            (void)json_array_append_new(missing, json_string(parts[i].name));
        }
        if (!warm->there[i] && warm->options->format == CTL_TABLE) {
            (void)fprintf(stderr, "  %s%-10s%s %s\n", ctl_colour(warm->options, CTL_YELLOW),
                          parts[i].name, ctl_colour(warm->options, CTL_PLAIN), parts[i].missing);
        }
    }
    if (warm->options->format != CTL_TABLE) {
        ctl_print_document(warm->options->format,
                           json_pack("{s:s, s:b, s:o, s:I}", "sale", warm->sale, "ready",
                                     (int)ready, "missing", missing, "edges",
                                     (json_int_t)warm->edge_count));
    } else {
        (void)printf("%s: %s (%zu edges)\n", warm->sale, ready ? "ready" : "not ready",
                     warm->edge_count);
        json_decref(missing);
    }
    return ready ? CTL_DONE : CTL_REFUSED;
}

static enum ctl_exit run(struct warm *warm, int64_t wait_ms)
{
    Tidegate__V1__SalesReply *known = NULL;
    enum ctl_exit code = ctl_session_sales(&warm->session, warm->sale, NULL, &known);
    if (code != CTL_DONE) {
        return code;
    }
    warm->generation = known->n_definitions > 0 ? known->definitions[0]->generation : 0;
    tidegate__v1__sales_reply__free_unpacked(known, NULL);
    if (warm->generation == 0) {
        (void)fprintf(stderr, "tidegatectl: there is no sale %s: declare it with sale apply\n",
                      warm->sale);
        return CTL_REFUSED;
    }
    int error = listen_to_all(warm);
    if (error != 0) {
        ctl_session_explain(&warm->session, "bus", error);
        return CTL_UNREACHABLE;
    }
    wait_for_all(warm, wait_ms);
    return report(warm);
}

enum ctl_exit ctl_warm(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    static struct warm warm; /* one per process */
    int64_t wait_ms = WAIT_MS;
    warm.options = options;
    warm.sale = arguments->positional[0];
    if (!ctl_sale_name(warm.sale) ||
        (arguments->wait != NULL &&
         !ctl_duration("--wait", arguments->wait, 0, WAIT_MS_MAX, &wait_ms))) {
        return CTL_USAGE;
    }
    enum ctl_exit code = ctl_session_open(options, false, &warm.session);
    if (code == CTL_DONE) {
        code = run(&warm, wait_ms);
        ctl_session_close(&warm.session);
    }
    return code;
}
