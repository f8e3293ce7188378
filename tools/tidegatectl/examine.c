/* SPDX-License-Identifier: Apache-2.0
 * Gathers the facts: the daemons tell theirs, the rest is seen from here. */
#include "lib/io/keys.h"
#include "lib/io/now.h"
#include "tidegate/v1/common.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"
#include "tools/tidegatectl/control.h"
#include "tools/tidegatectl/doctor.h"

#include <dirent.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

/* Every daemon answers from memory. */
enum { ASK_MS = 1000 };

static struct ctl_patient *admit(struct ctl_examination *examination, const char *source,
                                 const char *instance)
{
    if (examination->count == CTL_PATIENTS_MAX) {
        return NULL;
    }
    struct ctl_patient *patient = &examination->patients[examination->count++];
    ctl_printable(source, strlen(source), patient->source, sizeof(patient->source));
    ctl_printable(instance, strlen(instance), patient->instance, sizeof(patient->instance));
    patient->facts[0] = '\0';
    return patient;
}

__attribute__((format(printf, 2, 3))) static void note(struct ctl_patient *patient,
                                                       const char *format, ...)
{
    size_t length = strlen(patient->facts);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(patient->facts + length, sizeof(patient->facts) - length, format, arguments);
    va_end(arguments);
}

/* ---- daemons ---- */

/* How far a clock is ahead that showed `told` at some moment between our `from` and `to`. */
static int64_t ahead(int64_t told, int64_t from, int64_t to)
{
    return told < from ? told - from : told > to ? told - to : 0;
}

static void on_examined(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct ctl_examination *examination = context;
    const Tidegate__V1__ExamineReply *told = (const Tidegate__V1__ExamineReply *)reply;
    if (status != 0) {
        examination->ended = true;
        return;
    }
    struct ctl_patient *patient = admit(examination, told->daemon, told->instance);
    if (patient == NULL) {
        return;
    }
    const char *ready = told->not_ready[0] == '\0' ? "yes" : told->not_ready;
    note(patient, "ready %.*s\n", (int)strcspn(ready, "\n"), ready);
    note(patient, "clock_ahead_ms %" PRId64 "\n",
         ahead(told->now_ms, examination->asked_ms, tg_now_wall().ms));
    note(patient, "%.*s", TG_MAX_CONFIGURATION_BYTES, told->configuration);
}

static bool is_ended(const void *context)
{
    const struct ctl_examination *examination = context;
    return examination->ended;
}

static int ask_daemons(struct ctl_examination *examination)
{
    Tidegate__V1__ExamineRequest request = TIDEGATE__V1__EXAMINE_REQUEST__INIT;
    examination->asked_ms = tg_now_wall().ms;
    int error = tg_bus_ask_all(examination->session->bus, TG_MESSAGE_EXAMINE, NULL, &request.base,
                               ASK_MS, on_examined, examination, 0);
    if (error != 0) {
        return error;
    }
    (void)ctl_session_until(examination->session, is_ended, examination, 2 * ASK_MS);
    for (size_t class = 0; class < CTL_CLASSES; class ++) {
        bool heard = false;
        for (size_t i = 0; i < examination->count; i++) {
            heard |= strcmp(examination->patients[i].source, ctl_classes[class]) == 0;
        }
        struct ctl_patient *absent = heard ? NULL : admit(examination, ctl_classes[class], "-");
        if (absent != NULL) {
            note(absent, "ready nobody answers\n");
        }
    }
    return 0;
}

/* ---- the bus and the keys, from here ---- */

/* Whether NATS lets in who shows no credentials. */
static bool anonymous(const struct ctl_examination *examination)
{
    struct ctl_session stranger;
    struct ctl_options options = *examination->options;
    if (strchr(options.nats_url, '@') == NULL && options.nats_keys == NULL) {
        return true;
    }
    options.nats_url = examination->session->server;
    options.nats_keys = NULL;
    if (ctl_session_open(&options, true, &stranger) != CTL_DONE) {
        return false;
    }
    ctl_session_close(&stranger);
    return true;
}

static void on_signal_heard(void *context, struct tg_bus_incoming *take_incoming)
{
    (void)context;
    tg_bus_release(take_incoming);
}

static bool is_refused(const void *context)
{
    const struct ctl_session *session = context;
    return !tg_bus_healthy(session->bus);
}

/* Whether NATS refuses us to hear what no operator needs: then it does so for all. Nothing is taken
 * from anybody by hearing it too. */
static const char *rights(const struct ctl_examination *examination)
{
    struct ctl_session own;
    if (ctl_session_open(examination->options, true, &own) != CTL_DONE) {
        return "unknown";
    }
    bool refused = tg_bus_serve(own.bus, TG_MESSAGE_LOAD_SIGNAL, on_signal_heard, NULL) == 0 &&
                   ctl_session_until(&own, is_refused, &own, ASK_MS) && tg_bus_connected(own.bus);
    ctl_session_close(&own);
    return refused ? "least" : "all";
}

static const char *transport(const char *url)
{
    bool tls = strncmp(url, "tls://", 6) == 0;
    bool local = strstr(url, "://127.") != NULL || strstr(url, "://localhost") != NULL ||
                 strstr(url, "://[::1]") != NULL;
    return tls ? "on" : local ? "local" : "off";
}

static void look_at_bus(struct ctl_examination *examination)
{
    struct ctl_patient *patient = admit(examination, "nats", examination->session->server);
    if (patient != NULL) {
        note(patient, "max_payload %" PRId64 "\n", tg_bus_payload_max(examination->session->bus));
        note(patient, "anonymous %s\n", anonymous(examination) ? "yes" : "no");
        note(patient, "nats_rights %s\n", rights(examination));
        note(patient, "tls %s\n", transport(examination->session->server));
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* The first secret of the folder that everybody may read; false: none. */
static bool exposed(const char *folder, char *out_name, size_t capacity)
{
    DIR *directory = opendir(folder);
    bool found = false;
    if (directory == NULL) {
        return false; /* then the operator's key is not good either */
    }
    for (const struct dirent *entry = readdir(directory); entry != NULL && !found;
         entry = readdir(directory)) {
        struct stat status;
        bool open = fstatat(dirfd(directory), entry->d_name, &status, 0) == 0 &&
                    S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0;
        if (open && !ends_with(entry->d_name, ".pub") && !ends_with(entry->d_name, ".hash")) {
            ctl_printable(entry->d_name, strlen(entry->d_name), out_name, capacity);
            found = true;
        }
    }
    (void)closedir(directory);
    return found;
}

static void look_at_keys(struct ctl_examination *examination)
{
    const char *folder = examination->options->keys;
    struct tg_sign_key key;
    char name[64] = "none";
    struct ctl_patient *patient =
        admit(examination, "keys", folder != NULL ? folder : "TIDEGATE_KEYS is not set");
    if (patient == NULL) {
        return;
    }
    bool good = folder != NULL && tg_keys_sign(folder, "control-operator", &key) == 0;
    if (folder != NULL) {
        (void)exposed(folder, name, sizeof(name));
    }
    note(patient, "readable_by_others %s\noperator %s\n", name, good ? "good" : "missing");
    sodium_memzero(&key, sizeof(key));
}

/* ---- the sale ---- */

static void on_state(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ctl_pulse *pulse = context;
    const Tidegate__V1__SaleState *state =
        (const Tidegate__V1__SaleState *)tg_bus_body(take_incoming);
    if (strcmp(tg_bus_sale(take_incoming), pulse->sale) == 0) {
        pulse->state_heard = true;
        pulse->closed = state->phase == TIDEGATE__V1__SALE_PHASE__SALE_PHASE_CLOSED;
        pulse->armed = state->armed;
        pulse->epoch = state->epoch;
    }
    tg_bus_release(take_incoming);
}

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ctl_pulse *pulse = context;
    const Tidegate__V1__Stock *stock = (const Tidegate__V1__Stock *)tg_bus_body(take_incoming);
    if (strcmp(tg_bus_sale(take_incoming), pulse->sale) == 0) {
        pulse->stock_heard = true;
        pulse->lease_ms = stock->armed ? stock->attested_until_ms - stock->gate_now_ms : 0;
    }
    tg_bus_release(take_incoming);
}

static bool is_heard(const void *context)
{
    const struct ctl_pulse *pulse = context;
    return pulse->state_heard && (pulse->stock_heard || !pulse->armed);
}

static bool is_beating(const void *context)
{
    const struct ctl_pulse *pulse = context;
    return pulse->state_heard && pulse->armed && pulse->lease_ms > 0;
}

void ctl_examine_sale(struct ctl_examination *examination, int64_t wait_ms)
{
    const struct ctl_pulse *pulse = &examination->pulse;
    (void)ctl_session_until(examination->session, is_heard, pulse, TG_MAX_STATE_STALE_MS);
    if (wait_ms > 0) {
        (void)ctl_session_until(examination->session, is_beating, pulse, wait_ms);
    }
    struct ctl_patient *patient = admit(examination, "sale", pulse->sale);
    if (patient == NULL) {
        return;
    }
    note(patient, "state %s\n", pulse->state_heard ? "fresh" : "silent");
    if (!pulse->closed) { /* nobody proves what is over */
        note(patient, "armed %s\nproved %s\n", pulse->armed ? "yes" : "no",
             is_beating(pulse) ? "yes" : "no");
    }
}

/* Whether the ledger knows the sale; then hears of it from now on. */
static enum ctl_exit attend_sale(struct ctl_examination *examination)
{
    Tidegate__V1__SalesReply *reply = NULL;
    enum ctl_exit code =
        ctl_session_sales(examination->session, examination->pulse.sale, NULL, &reply);
    if (code != CTL_DONE) {
        return code;
    }
    bool known = reply->n_states > 0;
    tidegate__v1__sales_reply__free_unpacked(reply, NULL);
    if (!known) {
        (void)fprintf(stderr, "tidegatectl: there is no sale %s\n", examination->pulse.sale);
        return CTL_REFUSED;
    }
    struct tg_bus *bus = examination->session->bus;
    int error = tg_bus_serve(bus, TG_MESSAGE_STATE, on_state, &examination->pulse);
    if (error == 0) {
        error = tg_bus_serve(bus, TG_MESSAGE_GATE_STOCK, on_stock, &examination->pulse);
    }
    if (error != 0) {
        ctl_session_explain(examination->session, "bus", error);
        return CTL_UNREACHABLE;
    }
    return CTL_DONE;
}

enum ctl_exit ctl_examine(struct ctl_examination *examination)
{
    enum ctl_exit code = examination->pulse.sale != NULL ? attend_sale(examination) : CTL_DONE;
    if (code != CTL_DONE) {
        return code;
    }
    int error = ask_daemons(examination);
    if (error != 0) {
        ctl_session_explain(examination->session, "bus", error);
        return CTL_UNREACHABLE;
    }
    look_at_bus(examination);
    look_at_keys(examination);
    return CTL_DONE;
}
