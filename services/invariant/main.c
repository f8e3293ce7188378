/* SPDX-License-Identifier: Apache-2.0
 * Wiring of the checker. */
#include "services/invariant/checker.h"

static struct invariant_settings settings;
static struct invariant *invariant;

/* clang-format off: the order of these includes is their meaning */
static const struct tg_setting rows[] = {
#define TG_SETTINGS_OF struct invariant_settings
#include "lib/io/config_rows.h"
#include "services/invariant/settings.def"
#include "lib/io/config_end.h"
};
/* clang-format on */

static int start(struct tg_app *app, void *context)
{
    return invariant_open(app, &settings, &invariant);
}

static bool ready(void *context, const char **out_why)
{
    return invariant_ready(invariant, out_why);
}

static void drain(void *context)
{
    invariant_drain(invariant);
}

static size_t busy(void *context)
{
    return invariant_busy(invariant);
}

static void stop(void *context)
{
    invariant = invariant_free(invariant);
}

int main(int argc, char **argv)
{
    const struct tg_app_spec spec = {.name = "invariant",
                                     .summary = "Proves the sale right every round, or pauses it.",
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
