/* SPDX-License-Identifier: Apache-2.0
 * Starting -> Running -> Draining -> Flushing -> Stopped. Everything between runs on one loop; the
 * pulse (a timer of 100 ms) measures the loop's lag, watches readiness and moves the drain along.
 */
#include "lib/io/app.h"

#include "lib/io/app_parts.h"
#include "lib/io/bus.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

enum { PULSE_MS = 100, FLUSH_POLL_MS = 10, CLOSE_LIMIT_MS = 1000, SIGNAL_EXIT = 128 };

uv_loop_t *tg_app_loop(struct tg_app *app)
{
    return &app->loop;
}

struct tg_bus *tg_app_bus(struct tg_app *app)
{
    return app->bus;
}

const char *tg_app_name(const struct tg_app *app)
{
    return app->spec->name;
}

const char *tg_app_instance(const struct tg_app *app)
{
    return app->instance;
}

bool tg_app_draining(const struct tg_app *app)
{
    return app->phase > APP_RUNNING;
}

static void on_tick(uv_timer_t *handle)
{
    struct app_timer *timer = handle->data;
    timer->tick(timer->context);
}

int tg_app_every(struct tg_app *app, uint64_t period_ms, void (*tick)(void *context), void *context)
{
    assert(period_ms >= 1);
    struct app_timer *timer = calloc(1, sizeof(*timer));
    if (timer == NULL) {
        return -ENOMEM;
    }
    *timer = (struct app_timer){.tick = tick, .context = context, .next = app->timers};
    uv_timer_init(&app->loop, &timer->handle);
    timer->handle.data = timer;
    app->timers = timer;
    return uv_timer_start(&timer->handle, on_tick, period_ms, period_ms);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_timers(struct tg_app *app)
{
    while (app->timers != NULL) {
        struct app_timer *timer = app->timers;
        app->timers = timer->next;
        uv_close((uv_handle_t *)&timer->handle, on_timer_closed);
    }
}

/* Everything is flushed, or its time is over: close what is ours, so that the loop ends by itself.
 */
static void stop(struct tg_app *app)
{
    app->phase = APP_STOPPED;
    close_timers(app);
    if (app->spec->stop != NULL) {
        app->spec->stop(app->spec->context);
    }
    app->bus = tg_bus_free(app->bus);
    app->admin = tg_http_free(app->admin);
    uv_close((uv_handle_t *)&app->on_term, NULL);
    uv_close((uv_handle_t *)&app->on_int, NULL);
    uv_close((uv_handle_t *)&app->pulse, NULL);
}

static void flush(struct tg_app *app)
{
    size_t busy = app->spec->busy != NULL ? app->spec->busy(app->spec->context) : 0;
    if (busy > 0 && uv_now(&app->loop) < app->phase_ends_ms) {
        return;
    }
    if (busy > 0) {
        tg_log(TG_LOG_WARN, "app.flush_incomplete", TG_NUMBER_FIELD("left", busy));
    }
    stop(app);
}

static void begin_flush(struct tg_app *app)
{
    app->phase = APP_FLUSHING;
    app->phase_ends_ms = uv_now(&app->loop) + (uint64_t)app->settings.drain_limit_ms;
    if (app->spec->drain != NULL) {
        app->spec->drain(app->spec->context);
    }
    uv_timer_set_repeat(&app->pulse, FLUSH_POLL_MS);
    uv_timer_again(&app->pulse);
}

/* Not ready from now on, but serving: whoever routes to us needs the lead to notice. */
static void begin_drain(struct tg_app *app, uint64_t lead_ms)
{
    tg_log(TG_LOG_INFO, "app.draining", TG_NUMBER_FIELD("lead_ms", lead_ms),
           TG_NUMBER_FIELD("limit_ms", app->settings.drain_limit_ms));
    app->phase = APP_DRAINING;
    app->phase_ends_ms = uv_now(&app->loop) + lead_ms;
    if (lead_ms == 0) {
        begin_flush(app);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct tg_app *app = handle->data;
    if (app->phase > APP_RUNNING) {
        tg_log(TG_LOG_WARN, "app.stopped_at_once", TG_NUMBER_FIELD("signal", number));
        _exit(SIGNAL_EXIT + number);
    }
    begin_drain(app, (uint64_t)app->settings.drain_lead_ms);
}

int tg_app_on_reload(struct tg_app *app, int (*reload)(void *context), void *context)
{
    if (app->reload_count == APP_RELOADS) {
        return TG_ERR_FULL;
    }
    app->reloads[app->reload_count].reload = reload;
    app->reloads[app->reload_count++].context = context;
    return 0;
}

static void on_hangup(uv_signal_t *handle, int number)
{
    struct tg_app *app = handle->data;
    int first_error = 0;
    (void)number;
    if (app->phase == APP_STOPPED) {
        return; /* what is read anew is given back by now */
    }
    for (size_t i = 0; i < app->reload_count; i++) {
        int error = app->reloads[i].reload(app->reloads[i].context);
        first_error = first_error == 0 ? error : first_error;
    }
    if (app->bus != NULL) {
        tg_bus_renew(app->bus);
    }
    tg_log(first_error == 0 ? TG_LOG_INFO : TG_LOG_ERROR,
           first_error == 0 ? "app.reloaded" : "app.reload_failed",
           TG_TEXT_FIELD("error", first_error == 0 ? "" : tg_error_text(first_error)));
}

void tg_app_fail(struct tg_app *app, const char *event, int error)
{
    tg_log(TG_LOG_ERROR, event, TG_NUMBER_FIELD("code", error),
           TG_TEXT_FIELD("error", tg_error_text(error)));
    app->failed = true;
    if (app->phase == APP_RUNNING) {
        begin_drain(app, 0);
    }
}

static void watch_readiness(struct tg_app *app)
{
    const char *why = "";
    bool ready = app_is_ready(app, &why);
    if (ready && !app->was_ready) {
        tg_log(TG_LOG_INFO, "app.ready", TG_NUMBER_FIELD("admin_port", tg_http_port(app->admin)));
    } else if (!ready && app->was_ready) {
        tg_log(TG_LOG_WARN, "app.not_ready", TG_TEXT_FIELD("why", why));
    }
    app->was_ready = ready;
}

static void measure_lag(struct tg_app *app)
{
    uint64_t now_us = tg_now_us();
    uint64_t late_us = now_us > app->pulse_due_us ? now_us - app->pulse_due_us : 0;
    tg_metric_observe_us(TG_METRIC_LOOP_LAG, "", late_us);
    app->lag_us = late_us > app->lag_us ? late_us : app->lag_us;
    app->pulse_due_us = now_us + PULSE_MS * 1000;
}

uint64_t tg_app_lag_us(struct tg_app *app)
{
    uint64_t lag_us = app->lag_us;
    app->lag_us = 0;
    return lag_us;
}

static void on_pulse(uv_timer_t *handle)
{
    struct tg_app *app = handle->data;
    if (app->phase == APP_RUNNING) {
        measure_lag(app);
        watch_readiness(app);
    } else if (app->phase == APP_DRAINING && uv_now(&app->loop) >= app->phase_ends_ms) {
        begin_flush(app);
    } else if (app->phase == APP_FLUSHING) {
        flush(app);
    }
}

static int open_handles(struct tg_app *app)
{
    uv_signal_init(&app->loop, &app->on_term);
    uv_signal_init(&app->loop, &app->on_int);
    uv_signal_init(&app->loop, &app->on_hup);
    uv_timer_init(&app->loop, &app->pulse);
    app->on_term.data = app->on_int.data = app->on_hup.data = app->pulse.data = app;
    int error = uv_signal_start(&app->on_term, on_signal, SIGTERM);
    if (error == 0) {
        error = uv_signal_start(&app->on_int, on_signal, SIGINT);
    }
    if (error == 0) {
        error = uv_signal_start(&app->on_hup, on_hangup, SIGHUP);
    }
    if (error == 0) {
        app->pulse_due_us = tg_now_us() + PULSE_MS * 1000;
        error = uv_timer_start(&app->pulse, on_pulse, PULSE_MS, PULSE_MS);
    }
    return error;
}

/* A peer that went away is an error of the write, not the end of the process. */
static void ignore_broken_pipes(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, NULL) != 0) {
        abort(); /* only possible with a wrong signal number */
    }
}

/* Connections are descriptors: take what the system allows. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            tg_log(TG_LOG_WARN, "app.descriptor_limit", TG_NUMBER_FIELD("errno", errno));
        }
    }
}

static int open_bus(struct tg_app *app)
{
    const struct tg_app_spec *spec = app->spec;
    const struct tg_bus_spec bus = {
        .url = app->settings.nats_url,
        .daemon = spec->name,
        .instance = app->instance,
        .identity = spec->identity != NULL ? spec->identity(spec->context) : spec->name,
        .keys = app->settings.nats_keys,
        .ca = app->settings.nats_ca,
        .server_name = app->settings.nats_server_name};
    return tg_bus_open(&app->loop, &bus, &app->bus);
}

static int open_all(struct tg_app *app)
{
    int error = app_admin_open(app);
    if (error != 0) {
        tg_log(TG_LOG_ERROR, "app.admin_port_failed",
               TG_TEXT_FIELD("host", app->settings.admin_host),
               TG_NUMBER_FIELD("port", app->settings.admin_port),
               TG_TEXT_FIELD("error", tg_error_text(error)));
        return error;
    }
    if (!app->spec->without_bus) {
        error = open_bus(app);
        if (error != 0) {
            tg_log(TG_LOG_ERROR, "app.bus_failed", TG_TEXT_FIELD("error", tg_error_text(error)));
            return error;
        }
        error = tg_bus_serve(app->bus, TG_MESSAGE_EXAMINE, app_on_examine, app);
        if (error != 0) {
            return error;
        }
    }
    error = app->spec->start != NULL ? app->spec->start(app, app->spec->context) : 0;
    if (error != 0) {
        tg_log(TG_LOG_ERROR, "app.start_failed", TG_NUMBER_FIELD("code", error),
               TG_TEXT_FIELD("error", tg_error_text(error)));
    }
    return error;
}

static void on_close_limit(uv_timer_t *handle)
{
    uv_stop(handle->loop);
}

/* Lets closing handles finish, for at most a second: a handle somebody forgot must not keep the
 * process. */
static void finish_loop(struct tg_app *app)
{
    uv_timer_t limit;
    uv_timer_init(&app->loop, &limit);
    uv_timer_start(&limit, on_close_limit, CLOSE_LIMIT_MS, 0);
    uv_unref((uv_handle_t *)&limit);
    uv_unref((uv_handle_t *)&app->on_hup); /* to the end: unhandled, a hangup would kill us */
    uv_run(&app->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&limit, NULL);
    uv_close((uv_handle_t *)&app->on_hup, NULL);
    uv_run(&app->loop, UV_RUN_NOWAIT);
    if (uv_loop_close(&app->loop) != 0) {
        tg_log(TG_LOG_DEBUG, "app.handles_left_open");
    }
}

static int run(struct tg_app *app)
{
    tg_log_open(app->spec->name, app->instance, app->log_level);
    ignore_broken_pipes();
    raise_descriptor_limit();
    if (uv_loop_init(&app->loop) != 0) {
        tg_log(TG_LOG_ERROR, "app.start_failed", TG_TEXT_FIELD("error", "no event loop"));
        return EX_OSERR;
    }
    int error = open_handles(app);
    if (error == 0) {
        error = open_all(app);
    }
    if (error != 0) {
        /* What start() began is half made: the process ends here, the system frees it. */
        return EX_UNAVAILABLE;
    }
    tg_log(TG_LOG_INFO, "app.started", TG_NUMBER_FIELD("admin_port", tg_http_port(app->admin)),
           TG_NUMBER_FIELD("pid", getpid()), TG_TEXT_FIELD("version", TG_VERSION));
    app->phase = APP_RUNNING;
    if (app->failed) {
        begin_drain(app, 0);
    }
    while (app->phase != APP_STOPPED && uv_run(&app->loop, UV_RUN_ONCE) != 0) {
    }
    finish_loop(app);
    int code = app->failed ? EX_SOFTWARE : EXIT_SUCCESS;
    tg_log(TG_LOG_INFO, "app.stopped", TG_NUMBER_FIELD("exit_code", code));
    return code;
}

int tg_app_main(int argc, char **argv, const struct tg_app_spec *spec)
{
    enum app_action action = app_parse_options(argc, argv, spec);
    if (action == APP_USAGE) {
        return EX_USAGE;
    }
    if (action == APP_HELP) {
        app_print_help(stdout, spec);
        return EXIT_SUCCESS;
    }
    if (action == APP_VERSION) {
        printf("tidegate-%s %s\n", spec->name, TG_VERSION);
        return EXIT_SUCCESS;
    }
    static struct tg_app app; /* one a process; its loop is pointed at by every handle */
    app.spec = spec;
    if (sodium_init() < 0) {
        return EX_OSERR;
    }
    if (app_load_settings(&app, stderr) != 0) {
        return EX_CONFIG;
    }
    if (action != APP_HEALTH && spec->check != NULL && spec->check(spec->context) != 0) {
        return EX_CONFIG;
    }
    if (action == APP_CHECK) {
        app_print_settings(stdout, &app);
        return EXIT_SUCCESS;
    }
    return action == APP_HEALTH ? app_health(&app.settings) : run(&app);
}
