/* SPDX-License-Identifier: Apache-2.0
 * Wiring of the reserve daemon. */
#include "services/reserve/service.h"

static struct reserve_service service;

/* The order of these lines is their meaning. */
/* clang-format off */
static const struct tg_setting rows[] = {
#define TG_SETTINGS_OF struct reserve_settings
#include "lib/io/config_rows.h"
#include "services/reserve/settings.def"
#include "lib/io/config_end.h"
};
/* clang-format on */

int main(int argc, char **argv)
{
    const struct tg_app_spec spec = {
        .name = "reserve",
        .summary = "The gate: takes, extends, settles and releases units. Only writer of Redis.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .settings = &service.settings,
        .start = reserve_service_start,
        .ready = reserve_service_ready,
        .configuration = reserve_service_configuration,
        .drain = reserve_service_drain,
        .busy = reserve_service_busy,
        .stop = reserve_service_stop,
        .context = &service};
    return tg_app_main(argc, argv, &spec);
}
