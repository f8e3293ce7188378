/* SPDX-License-Identifier: Apache-2.0
 * Admission's shell: hears the bus, feeds the core, runs its actions. Decides nothing. */
#ifndef ADMISSION_SERVICE_H
#define ADMISSION_SERVICE_H

#include "lib/io/brain.h"
#include "lib/io/es256.h"
#include "services/admission/core.h"
#include "services/admission/load.h"
#include "services/admission/settings.h"

struct admission_service {
    struct admission_settings settings;
    struct admission_keys keys;
    struct tg_es256 *es256; /* NULL: passes are EdDSA */
    struct tg_brains brains;
    struct admission_goals goals;
    struct admission_gauge gauges[ADMISSION_DAEMONS];
    uint64_t budgets_milli[TG_MAX_SALES]; /* each sale's part of what all may use */
    struct admission_brain by_sale[TG_MAX_SALES];
};

/* The functions of tg_app_spec; `context` is a zeroed struct admission_service with its settings
 * filled. */
/* The settings, before any socket opens. */
int admission_service_check(void *context);
int admission_service_start(struct tg_app *app, void *context);
bool admission_service_ready(void *context, const char **out_why);
void admission_service_drain(void *context);
void admission_service_stop(void *context);

#endif
