/* SPDX-License-Identifier: Apache-2.0
 * Wiring of the ledger. */
#include "services/ledger/migrate.h"
#include "services/ledger/service.h"
#include "services/ledger/settings.h"

#include <string.h>

static struct ledger_settings settings;
static struct ledger *ledger;

static const struct tg_setting rows[] = {
/* clang-format off */
#define TG_SETTINGS_OF struct ledger_settings
#include "lib/io/config_rows.h"
#include "services/ledger/settings.def"
#include "lib/io/config_end.h"
    /* clang-format on */
};
enum {
    ROW_COUNT = sizeof rows / sizeof rows[0],
    MIGRATE_ROWS = 2, /* the first two are all that --migrate needs: no keys in a migration job */
    EXIT_SETTING = 78
};

static int start(struct tg_app *app, void *context)
{
    return ledger_open(app, &settings, &ledger);
}

static bool ready(void *context, const char **out_why)
{
    return ledger_ready(ledger, out_why);
}

static void configuration(void *context, char *out_text, size_t capacity)
{
    ledger_configuration(ledger, out_text, capacity);
}

static void drain(void *context)
{
    ledger_drain(ledger);
}

static size_t busy(void *context)
{
    return ledger_busy(ledger);
}

static void stop(void *context)
{
    ledger = ledger_free(ledger);
}

static int migrate(void)
{
    if (tg_config_load("ledger", rows, MIGRATE_ROWS, &settings, stderr) != 0) {
        return EXIT_SETTING;
    }
    return ledger_migrate(settings.migrate_url[0] != '\0' ? settings.migrate_url
                                                          : settings.postgres_url);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--migrate") == 0) {
        return migrate();
    }
    const struct tg_app_spec spec = {
        .name = "ledger",
        .summary = "The record and the verdicts: the only writer of PostgreSQL. "
                   "With --migrate as its only argument it applies the schema and ends.",
        .rows = rows,
        .row_count = ROW_COUNT,
        .settings = &settings,
        .start = start,
        .ready = ready,
        .configuration = configuration,
        .drain = drain,
        .busy = busy,
        .stop = stop};
    return tg_app_main(argc, argv, &spec);
}
