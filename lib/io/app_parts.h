/* SPDX-License-Identifier: Apache-2.0
 * What the parts of lib/io/app (app.c, app_options.c, app_admin.c, app_health.c) share. For them
 * only. */
#ifndef TG_IO_APP_PARTS_H
#define TG_IO_APP_PARTS_H

#include "lib/io/app.h"
#include "lib/io/http.h"

struct tg_common_settings {
#include "lib/io/config_members.h"

#include "catalog/settings.def"

#include "lib/io/config_end.h"
};

enum app_phase { APP_STARTING, APP_RUNNING, APP_DRAINING, APP_FLUSHING, APP_STOPPED };

enum { APP_INSTANCE_LENGTH = 32, APP_RELOADS = 4 };

struct app_timer {
    uv_timer_t handle;
    void (*tick)(void *context);
    void *context;
    struct app_timer *next;
};

struct tg_bus_incoming;

struct tg_app {
    const struct tg_app_spec *spec;
    struct tg_common_settings settings;
    enum tg_log_level log_level;
    char instance[APP_INSTANCE_LENGTH + 1];
    uv_loop_t loop;
    struct tg_bus *bus;
    struct tg_http_server *admin;
    enum app_phase phase;
    bool was_ready;
    bool failed;            /* tg_app_fail was called */
    uint64_t phase_ends_ms; /* loop time: end of the lead, then of the flush */
    uint64_t pulse_due_us;
    uint64_t lag_us; /* the worst since it was asked for */
    uv_signal_t on_term, on_int, on_hup;
    struct {
        int (*reload)(void *context);
        void *context;
    } reloads[APP_RELOADS];
    size_t reload_count;
    uv_timer_t pulse;
    struct app_timer *timers;
};

enum app_action { APP_RUN = 1, APP_HELP, APP_VERSION, APP_CHECK, APP_HEALTH, APP_USAGE };

/* app_options.c: what the command line asks for; APP_USAGE after saying what is wrong with it. */
enum app_action app_parse_options(int argc, char **argv, const struct tg_app_spec *spec);
/* Prints --help. */
void app_print_help(FILE *out, const struct tg_app_spec *spec);
/* Prints every setting with its present value. */
void app_print_settings(FILE *out, const struct tg_app *app);
/* Common and own settings, log level, instance. 0 or TG_ERR_SETTING; every fault told to `errors`.
 */
TG_MUST_CHECK int app_load_settings(struct tg_app *app, FILE *errors);

/* app_admin.c: true when the daemon is ready; `out_why` static text, "" when ready. */
bool app_is_ready(struct tg_app *app, const char **out_why);
TG_MUST_CHECK int app_admin_open(struct tg_app *app);

/* app_examine.c: a handler of the bus; context is the app. */
void app_on_examine(void *context, struct tg_bus_incoming *take_incoming);

/* app_health.c: asks the admin port of a running daemon; the exit code. Blocks for at most two
 * seconds. */
int app_health(const struct tg_common_settings *settings);

#endif
