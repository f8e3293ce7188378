// SPDX-License-Identifier: Apache-2.0
#include "services/queue/service.h"

int main(int argc, char **argv)
{
    static const struct tg_setting rows[] = {
#define TG_SETTINGS_OF struct queue_settings
#include "lib/io/config_rows.h"
#include "services/queue/settings.def"
#include "lib/io/config_end.h"
    };
    static struct queue_service service;
    const struct tg_app_spec spec = {
        .name = "queue",
        .summary = "The order of people: index leases, the watermark, the board. Keeps no store.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .settings = &service.settings,
        .start = queue_service_start,
        .ready = queue_service_ready,
        .drain = queue_service_drain,
        .stop = queue_service_stop,
        .context = &service,
    };
    return tg_app_main(argc, argv, &spec);
}
