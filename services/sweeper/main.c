/* SPDX-License-Identifier: Apache-2.0
 * Wiring of the sweeper. */
#include "services/sweeper/settings.h"
#include "services/sweeper/sweep.h"

static struct sweeper_settings settings;
static struct sweeper *sweeper;

/* clang-format off: the order of these includes is their meaning */
static const struct tg_setting rows[] = {
#define TG_SETTINGS_OF struct sweeper_settings
#include "lib/io/config_rows.h"
#include "services/sweeper/settings.def"
#include "lib/io/config_end.h"
};
/* clang-format on */

static int start(struct tg_app *app, void *context)
{
    return sweeper_open(app, settings.keys, &sweeper);
}

static bool ready(void *context, const char **out_why)
{
    return sweeper_ready(sweeper, out_why);
}

static void drain(void *context)
{
    sweeper_drain(sweeper);
}

static size_t busy(void *context)
{
    return sweeper_busy(sweeper);
}

static void stop(void *context)
{
    sweeper = sweeper_free(sweeper);
}

int main(int argc, char **argv)
{
    const struct tg_app_spec spec = {
        .name = "sweeper",
        .summary = "Gives lapsed units back exactly once: due, verdict, obey, done.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .settings = &settings,
        .start = start,
        .ready = ready,
        .drain = drain,
        .busy = busy,
        .stop = stop};
    return tg_app_main(argc, argv, &spec);
}
