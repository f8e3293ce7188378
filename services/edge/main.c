/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/service.h"

int main(int argc, char **argv)
{
    /* The order of these includes is their meaning. */
    /* clang-format off */
    static const struct tg_setting rows[] = {
#define TG_SETTINGS_OF struct edge_settings
#include "lib/io/config_rows.h"
#include "services/edge/settings.def"
#include "lib/io/config_end.h"
    };
    /* clang-format on */
    static struct edge edge;
    const struct tg_app_spec spec = {
        .name = "edge",
        .summary =
            "HTTP: the waiting room and the purchase API. The only process the public reaches.",
        .rows = rows,
        .row_count = sizeof(rows) / sizeof(rows[0]),
        .settings = &edge.settings,
        .check = edge_check,
        .start = edge_start,
        .ready = edge_ready,
        .drain = edge_drain,
        .busy = edge_busy,
        .stop = edge_stop,
        .identity = edge_identity,
        .context = &edge,
    };
    return tg_app_main(argc, argv, &spec);
}
