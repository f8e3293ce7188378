// SPDX-License-Identifier: Apache-2.0
#include "services/admission/service.h"

int main(int argc, char **argv)
{
    static const struct tg_setting rows[] = {
#define TG_SETTINGS_OF struct admission_settings
#include "lib/io/config_rows.h"
#include "services/admission/settings.def"
#include "lib/io/config_end.h"
    };
    static struct admission_service service;
    const struct tg_app_spec spec = {
        .name = "admission",
        .summary = "Who may enter, and how fast: signs passes, sets the pace of the watermark.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .settings = &service.settings,
        .check = admission_service_check,
        .start = admission_service_start,
        .ready = admission_service_ready,
        .drain = admission_service_drain,
        .stop = admission_service_stop,
        .context = &service,
    };
    return tg_app_main(argc, argv, &spec);
}
