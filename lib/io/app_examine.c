/* SPDX-License-Identifier: Apache-2.0
 * Every daemon says which it is, what time it has, and what its store is configured as. */
#include "lib/io/app_parts.h"
#include "lib/io/bus.h"
#include "lib/io/now.h"
#include "lib/pure/limit.h"
#include "tidegate/v1/common.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number behind `name` in /proc/self/status (proc(5)); -1: not there. */
static long long status_number(const char *text, const char *name, int base)
{
    const char *found = strstr(text, name);
    return found != NULL ? (long long)strtoull(found + strlen(name), NULL, base) : -1;
}

/* What its pod lets this process do that it never needs, as a line of the configuration. Outside of
 * Kubernetes whoever runs the machine has decided. */
static void tell_hardening(char *out_text, size_t capacity)
{
    char status[4096] = "";
    bool in_pod = getenv("KUBERNETES_SERVICE_HOST") != NULL;
    FILE *file = in_pod ? fopen("/proc/self/status", "re") : NULL;
    if (file == NULL) {
        (void)snprintf(out_text, capacity, "unhardened nothing\n");
        return;
    }
    status[fread(status, 1, sizeof(status) - 1, file)] = '\0';
    (void)fclose(file);
    const struct {
        const char *name;
        bool open;
    } doors[] = {
        {" seccomp", status_number(status, "\nSeccomp:", 10) != 2}, /* 2: a filter */
        {" no_new_privileges", status_number(status, "\nNoNewPrivs:", 10) != 1},
        {" capabilities", status_number(status, "\nCapEff:", 16) != 0},
        {" root", geteuid() == 0},
        {" writable_root", access("/", W_OK) == 0},
    };
    size_t length = (size_t)snprintf(out_text, capacity, "unhardened");
    size_t closed = length;
    for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
        if (doors[i].open) {
            length += (size_t)snprintf(out_text + length, capacity - length, "%s", doors[i].name);
        }
    }
    (void)snprintf(out_text + length, capacity - length, "%s\n",
                   length == closed ? " nothing" : "");
}

void app_on_examine(void *context, struct tg_bus_incoming *take_incoming)
{
    const struct tg_app *app = context;
    char configuration[TG_MAX_CONFIGURATION_BYTES] = "";
    Tidegate__V1__ExamineReply reply = TIDEGATE__V1__EXAMINE_REPLY__INIT;
    tell_hardening(configuration, sizeof(configuration));
    if (app->spec->configuration != NULL) {
        size_t length = strlen(configuration);
        app->spec->configuration(app->spec->context, configuration + length,
                                 sizeof(configuration) - length);
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
