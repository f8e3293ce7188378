/* SPDX-License-Identifier: Apache-2.0
 * Every daemon says which it is, what time it has, and what its store is configured as. */
#include "lib/io/app_parts.h"
#include "lib/io/bus.h"
#include "lib/io/now.h"
#include "lib/pure/limit.h"
#include "tidegate/v1/common.pb-c.h"

void app_on_examine(void *context, struct tg_bus_incoming *take_incoming)
{
    const struct tg_app *app = context;
    char configuration[TG_MAX_CONFIGURATION_BYTES] = "";
    Tidegate__V1__ExamineReply reply = TIDEGATE__V1__EXAMINE_REPLY__INIT;
    if (app->spec->configuration != NULL) {
        app->spec->configuration(app->spec->context, configuration, sizeof(configuration));
    }
    const char *why = "";
    (void)app_is_ready(context, &why);
    reply.not_ready = (char *)why;
    reply.daemon = (char *)app->spec->name;
    reply.instance = (char *)app->instance;
    reply.now_ms = tg_now_wall().ms;
    reply.configuration = configuration;
    tg_bus_reply(take_incoming, &reply.base);
}
