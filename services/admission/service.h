/* SPDX-License-Identifier: Apache-2.0
 * Admission's shell: hears the bus, feeds the core, runs its actions. Decides nothing. */
#ifndef ADMISSION_SERVICE_H
#define ADMISSION_SERVICE_H

#include "lib/io/app.h"
#include "lib/io/sales.h"
#include "services/admission/core.h"
#include "services/admission/load.h"
#include "services/admission/settings.h"

struct admission_service {
    struct admission_settings settings;
    struct tg_app *app;
    struct tg_sales *sales;
    struct admission_keys keys;
    struct tg_term term;
    bool draining;
    struct admission_load load_reserve;
    struct admission_load load_ledger;
    size_t brain_count;
    struct admission_brain brains[TG_MAX_SALES];
};

/* The functions of tg_app_spec; `context` is a zeroed struct admission_service with its settings
 * filled. */
int admission_service_start(struct tg_app *app, void *context);
bool admission_service_ready(void *context, const char **out_why);
void admission_service_drain(void *context);
void admission_service_stop(void *context);

#endif
