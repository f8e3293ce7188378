/* SPDX-License-Identifier: Apache-2.0
 * The queue's shell: hears the bus, feeds the core, runs its actions. Decides nothing. */
#ifndef QUEUE_SERVICE_H
#define QUEUE_SERVICE_H

#include "lib/io/brain.h"
#include "services/queue/core.h"
#include "services/queue/draw.h"
#include "services/queue/settings.h"

struct queue_service {
    struct queue_settings settings;
    struct tg_brains brains;
    struct queue_draws draws;
    bool leases; /* serves what edges ask: from the first time it is active */
    struct queue_brain by_sale[TG_MAX_SALES];
};

/* The functions of tg_app_spec; `context` is a zeroed struct queue_service with its settings
 * filled. */
int queue_service_start(struct tg_app *app, void *context);
bool queue_service_ready(void *context, const char **out_why);
void queue_service_drain(void *context);
void queue_service_stop(void *context);

#endif
