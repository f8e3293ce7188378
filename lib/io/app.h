/* SPDX-License-Identifier: Apache-2.0
 * The one lifecycle of every daemon: options, settings, log, loop, admin port, bus, signals,
 * readiness, drain. Starting -> Ready -> Draining -> Flushing -> Stopped. A second TERM exits at
 * once. Bad settings exit 78 before any socket. */
#ifndef TG_IO_APP_H
#define TG_IO_APP_H

#include "lib/io/config.h"
#include "lib/io/log.h"

#include <stdbool.h>
#include <uv.h>

struct tg_app;
struct tg_bus;

struct tg_app_spec {
    const char *name;              /* "reserve"; binary is tidegate-reserve */
    const char *summary;           /* one sentence for --help */
    const struct tg_setting *rows; /* the daemon's own */
    size_t row_count;
    void *settings; /* its settings struct, filled before start */
    /* Settings are filled, nothing is open: judges what a row alone cannot (files, one setting
     * against another). After one sentence on stderr a negative error, which is exit 78. Also run
     * by --check-config. May be NULL. */
    int (*check)(void *context);
    /* Bus connected and loop running soon: open stores, serve subjects, start timers. 0 or a
     * negative error (fatal). */
    int (*start)(struct tg_app *app, void *context);
    /* True when it *is* ready; `out_why` names what is missing (static text). Asked on every
     * /readyz. */
    bool (*ready)(void *context, const char **out_why);
    /* Stop taking new work. */
    void (*drain)(void *context);
    /* Number of things still in progress; 0 = flushed. Polled while Flushing. */
    size_t (*busy)(void *context);
    void (*stop)(void *context);
    /* What its store says of its own configuration, as lines "name value\n" (TG_REQUIREMENT rows of
     * catalog/requirements.def); "" while that is not known. May be NULL: no store. */
    void (*configuration)(void *context, char *out_text, size_t capacity);
    /* Of catalog/identities.def, once settings are filled. NULL: its name. */
    const char *(*identity)(const void *context);
    void *context;
    bool without_bus; /* tools and tests */
};

/* main() of every daemon: returns the exit code. Options: --help --version --check-config
 * --healthcheck. */
int tg_app_main(int argc, char **argv, const struct tg_app_spec *spec);

/* Called on SIGHUP: reads its key files anew; on an error keeps what it has. At most 4. */
TG_MUST_CHECK int tg_app_on_reload(struct tg_app *app, int (*reload)(void *context), void *context);

uv_loop_t *tg_app_loop(struct tg_app *app);
struct tg_bus *tg_app_bus(struct tg_app *app);
const char *tg_app_name(const struct tg_app *app);
/* Unique among peers, [a-z0-9-]{1,32}: a setting, or name and random characters. */
const char *tg_app_instance(const struct tg_app *app);
bool tg_app_draining(const struct tg_app *app);

/* A repeating timer owned by the app. period >= 1 ms. Returns 0 or a negative error. */
int tg_app_every(struct tg_app *app, uint64_t period_ms, void (*tick)(void *context),
                 void *context);

/* How late the loop was at worst since this was last asked, microseconds: what waits in front of it
 * waits at least as long. */
uint64_t tg_app_lag_us(struct tg_app *app);

/* A fatal condition found while running: logs it and begins the drain with this exit code. */
void tg_app_fail(struct tg_app *app, const char *event, int error);

#endif
