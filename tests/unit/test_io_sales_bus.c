/* SPDX-License-Identifier: Apache-2.0
 * The view of the sales on a real bus, in a real app: fetching, states, commands, acknowledgements.
 * One process plays the daemon and, on a second connection of the same loop, the ledger and the
 * operator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/io/keys.h"
#include "lib/io/now.h"
#include "lib/io/sales.h"
#include "tidegate/v1/ledger.pb-c.h"

#include <arpa/inet.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { STEP_MS = 10, STEP_DEADLINE_MS = 8000 };

static char folder[] = "/tmp/tidegate-view-XXXXXX";
static pid_t server;
static struct tg_app *app;
static struct tg_sales *sales;
static struct tg_bus *outside;
static struct tg_sign_key operator_key, stranger_key;

/* What the ledger of this test knows. */
static char sale_name[] = "sku_991", other_name[] = "sku_992", currency[] = "EUR", order[] = "fifo";
static uint64_t price_minor = 4900, generation = 1, sequence = 1;
static int64_t ledger_now_ms = 1000;
static bool serving;
static unsigned fetches, acks, commands, changes;
static char last_effect[64], pause_id[TG_BASE32_ID_LENGTH + 1];

static size_t step;
static struct tg_mono step_began;
static int failed_step = -1;

static void define(Tidegate__V1__SaleDefinition *definition, Tidegate__V1__ItemDefinition *item,
                   Tidegate__V1__ItemDefinition **list, char *name)
{
    tidegate__v1__sale_definition__init(definition);
    tidegate__v1__item_definition__init(item);
    item->sku = name;
    item->units = 500;
    item->price_minor = price_minor;
    item->currency = currency;
    *list = item;
    definition->sale = name;
    definition->generation = generation;
    definition->items = list;
    definition->n_items = 1;
    definition->order = order;
    definition->limit_per_buyer = 1;
    definition->hold_ms = 600000;
    definition->pace_start_milli = definition->pace_min_milli = definition->pace_max_milli = 1000;
    definition->proof_every_ms = 1000;
    definition->proof_lease_ms = 3000;
    definition->shards = 1;
}

/* One sale a page, so that paging is seen. */
static void on_sales(void *context, struct tg_bus_incoming *take_incoming)
{
    const Tidegate__V1__SalesRequest *request =
        (const Tidegate__V1__SalesRequest *)tg_bus_body(take_incoming);
    Tidegate__V1__SalesReply reply = TIDEGATE__V1__SALES_REPLY__INIT;
    Tidegate__V1__SaleDefinition definition, *definitions[1] = {&definition};
    Tidegate__V1__ItemDefinition item, *list[1];
    bool second = strcmp(request->after, sale_name) == 0 || strcmp(request->sale, other_name) == 0;

    (void)context;
    fetches++;
    define(&definition, &item, list, second ? other_name : sale_name);
    reply.definitions = definitions;
    reply.n_definitions = 1;
    reply.end = second || request->sale[0] != '\0';
    tg_bus_reply(take_incoming, &reply.base);
}

static void publish_state(char *paused_by, char *lifted)
{
    Tidegate__V1__SaleState state = TIDEGATE__V1__SALE_STATE__INIT;
    Tidegate__V1__SaleDefinition definition;
    Tidegate__V1__ItemDefinition item, *list[1];
    Tidegate__V1__PauseEntry pause = TIDEGATE__V1__PAUSE_ENTRY__INIT, *pauses[1] = {&pause};
    uint8_t digest[TG_DIGEST_BYTES];

    define(&definition, &item, list, sale_name);
    tg_definition_digest(&definition, digest);
    state.sale = sale_name;
    state.generation = generation;
    state.phase = TIDEGATE__V1__SALE_PHASE__SALE_PHASE_OPEN;
    state.epoch = generation;
    state.control_sequence = sequence;
    state.ledger_now_ms = ledger_now_ms;
    state.definition_digest = (ProtobufCBinaryData){sizeof(digest), digest};
    if (paused_by != NULL) {
        state.phase = TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED;
        pause.pause_id = paused_by;
        state.pauses = pauses;
        state.n_pauses = 1;
    }
    if (lifted != NULL) {
        state.lifted = &lifted;
        state.n_lifted = 1;
    }
    assert_int_equal(tg_bus_publish(outside, TG_MESSAGE_STATE, sale_name, &state.base), 0);
}

static void on_reply(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    (void)context;
    (void)token;
    (void)status;
    assert_null(reply); /* a daemon that is no judge stays silent */
}

static void send_pause(const struct tg_sign_key *key)
{
    Tidegate__V1__Command command = TIDEGATE__V1__COMMAND__INIT;
    struct tg_signed_command made;

    tg_command_new_id(pause_id);
    command.command_id = pause_id;
    command.sale = sale_name;
    command.generation = generation;
    command.kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE;
    command.expires_at_ms = tg_now_wall().ms + 20000;
    assert_int_equal(tg_command_sign(key, "operator", &command, &made), 0);
    assert_int_equal(tg_bus_ask_all(outside, TG_MESSAGE_CONTROL, sale_name, &made.message.base, 500,
                                    on_reply, NULL, 0),
                     0);
    tg_command_free(&made);
}

static void on_ack(void *context, struct tg_bus_incoming *take_incoming)
{
    const Tidegate__V1__CommandAck *ack =
        (const Tidegate__V1__CommandAck *)tg_bus_body(take_incoming);

    (void)context;
    acks++;
    assert_string_equal(ack->command_id, pause_id);
    assert_string_equal(ack->daemon, "view");
    snprintf(last_effect, sizeof(last_effect), "%s", ack->effect);
    tg_bus_release(take_incoming);
}

static void on_change(void *context, struct tg_sale *sale)
{
    (void)context;
    assert_non_null(sale);
    changes++;
}

static const char *on_command(void *context, struct tg_sale *sale,
                              const Tidegate__V1__Command *command)
{
    (void)context;
    assert_string_equal(command->command_id, pause_id);
    assert_int_equal(tg_sale_phase(sale, tg_now_mono()), TG_PHASE_PAUSED); /* honoured before */
    commands++;
    return NULL;
}

static enum tg_phase phase(void)
{
    struct tg_sale *sale = tg_sales_find(sales, sale_name);
    return sale == NULL ? TG_PHASE_UNKNOWN : tg_sale_phase(sale, tg_now_mono());
}

/* Steps: each is called every STEP_MS until it says true. `first` is true the first time. */

static bool connect_outside(bool first)
{
    (void)first;
    if (!serving && tg_bus_connected(outside) && tg_bus_connected(tg_app_bus(app))) {
        assert_false(tg_sales_known(sales)); /* nobody has answered yet */
        assert_int_equal(tg_bus_serve(outside, TG_MESSAGE_LEDGER_SALES, on_sales, NULL), 0);
        assert_int_equal(tg_bus_serve(outside, TG_MESSAGE_CONTROL_ACK, on_ack, NULL), 0);
        serving = true;
    }
    return serving;
}

static bool definitions_are_fetched(bool first)
{
    (void)first;
    return tg_sales_known(sales) && tg_sales_count(sales) == 2 &&
           tg_sales_find(sales, other_name) != NULL && tg_sales_find(sales, "sku_993") == NULL;
}

static bool a_state_opens(bool first)
{
    if (first) {
        assert_int_equal(phase(), TG_PHASE_PAUSED); /* never heard: stale */
        publish_state(NULL, NULL);
    }
    return phase() == TG_PHASE_OPEN;
}

static bool a_forged_pause_is_ignored(bool first)
{
    if (first) {
        send_pause(&stranger_key);
        sequence++;
        publish_state(NULL, NULL); /* behind it on the same connection */
    }
    if (tg_sales_find(sales, sale_name)->control_sequence != sequence) {
        return false;
    }
    assert_int_equal(phase(), TG_PHASE_OPEN);
    assert_int_equal(acks, 0);
    return true;
}

static bool a_pause_is_honoured_and_acknowledged(bool first)
{
    if (first) {
        send_pause(&operator_key);
    }
    return phase() == TG_PHASE_PAUSED && acks == 1 && commands == 1 &&
           strcmp(last_effect, "honoured") == 0;
}

static bool an_older_state_does_not_lift(bool first)
{
    if (first) {
        sequence--;
        publish_state(NULL, pause_id); /* a replay, even if it claims to lift */
        sequence += 2;
        ledger_now_ms += 1000;
        publish_state(NULL, NULL); /* newer, but knows nothing of the pause */
    }
    if (tg_sales_find(sales, sale_name)->control_sequence != sequence) {
        return false;
    }
    assert_int_equal(phase(), TG_PHASE_PAUSED);
    return true;
}

static bool the_ledger_takes_the_pause_over_and_lifts_it(bool first)
{
    if (first) {
        sequence++;
        publish_state(pause_id, NULL);
        sequence++;
        publish_state(NULL, pause_id);
    }
    return phase() == TG_PHASE_OPEN;
}

static bool a_new_digest_is_fetched(bool first)
{
    if (first) {
        price_minor = 5900;
        publish_state(NULL, NULL);
    }
    return tg_sales_find(sales, sale_name)->items[0].price_minor == 5900;
}

static bool a_new_generation_is_fetched(bool first)
{
    if (first) {
        generation = 2;
        sequence = 1;
        publish_state(NULL, NULL);
    }
    return phase() == TG_PHASE_OPEN && tg_sales_find(sales, sale_name)->generation == 2 &&
           tg_sales_count(sales) == 2;
}

static bool silence_pauses(bool first)
{
    (void)first;
    return phase() == TG_PHASE_PAUSED;
}

static bool (*const steps[])(bool first) = {
    connect_outside,
    definitions_are_fetched,
    a_state_opens,
    a_forged_pause_is_ignored,
    a_pause_is_honoured_and_acknowledged,
    an_older_state_does_not_lift,
    the_ledger_takes_the_pause_over_and_lifts_it,
    a_new_digest_is_fetched,
    a_new_generation_is_fetched,
    silence_pauses,
};

static void end(void)
{
    outside = tg_bus_free(outside);
    raise(SIGTERM);
}

static void on_step(void *context)
{
    static bool first = true;
    struct tg_mono now = tg_now_mono();
    bool done;

    (void)context;
    if (outside == NULL) {
        return;
    }
    if (first) {
        step_began = now;
    }
    done = steps[step](first);
    first = done;
    if (!done && now.ms - step_began.ms > STEP_DEADLINE_MS) {
        failed_step = (int)step;
        end();
    } else if (done && ++step == sizeof(steps) / sizeof(steps[0])) {
        end();
    }
}

static int on_start(struct tg_app *started, void *context)
{
    struct tg_sales_spec spec = {
        .keys_folder = folder, .on_change = on_change, .on_command = on_command};
    const struct tg_bus_spec ledger = {.url = getenv("TIDEGATE_NATS_URL"),
                                       .daemon = "ledger",
                                       .instance = "outside",
                                       .identity = "ledger"};
    int error;

    (void)context;
    app = started;
    error = tg_bus_open(tg_app_loop(app), &ledger, &outside);
    if (error == 0) {
        error = tg_sales_open(app, &spec, &sales);
    }
    return error != 0 ? error : tg_app_every(app, STEP_MS, on_step, NULL);
}

static void on_stop(void *context)
{
    (void)context;
    sales = tg_sales_free(sales);
}

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static int setup(void **state)
{
    char url[64], port[8];
    /* Ends with us, however we end. */
    const char *arguments[] = {"setpriv",   "--pdeathsig", "KILL", "--", "nats-server", "-a",
                               "127.0.0.1", "-p",          port,   "-l", "/dev/null",   NULL};

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(tg_keys_new(folder), 0);
    assert_int_equal(tg_keys_sign(folder, "control-operator", &operator_key), 0);
    assert_int_equal(tg_keys_sign(folder, "pass", &stranger_key), 0);
    snprintf(port, sizeof(port), "%d", free_port());
    snprintf(url, sizeof(url), "nats://127.0.0.1:%s", port);
    setenv("TIDEGATE_NATS_URL", url, 1);
    setenv("TIDEGATE_DRAIN_LIMIT", "1s", 1);
    assert_int_equal(posix_spawnp(&server, arguments[0], NULL, NULL,
                                  (char *const *)(uintptr_t)arguments, environ),
                     0);
    return 0;
}

static int teardown(void **state)
{
    char command[96];

    (void)state;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void the_view_follows_the_ledger(void **state)
{
    const struct tg_app_spec spec = {
        .name = "view", .summary = "a daemon for tests.", .start = on_start, .stop = on_stop};
    char name[] = "tidegate-view", *arguments[] = {name, NULL};

    (void)state;
    assert_int_equal(tg_app_main(1, arguments, &spec), 0);
    if (failed_step >= 0) {
        fail_msg("step %d did not come true", failed_step);
    }
    assert_int_equal(step, sizeof(steps) / sizeof(steps[0]));
    assert_true(fetches >= 4);
    assert_true(changes >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_view_follows_the_ledger)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
