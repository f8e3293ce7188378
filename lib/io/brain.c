// SPDX-License-Identifier: Apache-2.0
#include "lib/io/brain.h"

#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"

#include <string.h>

enum { TICK_MS = 50 };

static uint32_t random_jitter(void)
{
    uint32_t jitter;
    tg_random(&jitter, sizeof jitter);
    return jitter;
}

int tg_brains_find(const struct tg_brains *brains, const char *sale)
{
    for (size_t i = 0; i < brains->begun; i++) {
        if (strcmp(tg_brains_name(brains, i), sale) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *tg_brains_name(const struct tg_brains *brains, size_t index)
{
    return tg_sales_at(brains->sales, index)->name;
}

static void tick(struct tg_brains *brains, size_t index)
{
    const struct tg_sale *sale = tg_sales_find(brains->sales, tg_brains_name(brains, index));
    if (sale == NULL || brains->draining) {
        return;
    }
    const struct tg_brain_tick told = {.sale = sale,
                                       .phase = tg_sale_phase(sale, tg_now_mono()),
                                       .connected = tg_bus_connected(tg_app_bus(brains->app)),
                                       .jitter_ms = random_jitter()};
    brains->spec.tick(brains->spec.context, index, &told);
}

static void on_tick(void *context)
{
    struct tg_brains *brains = context;
    for (size_t i = 0; i < brains->begun; i++) {
        tick(brains, i);
    }
}

/* Sales are listed in the order they became known: whatever is new is behind the last index. */
static void on_change(void *context, struct tg_sale *sale)
{
    struct tg_brains *brains = context;
    while (brains->begun < tg_sales_count(brains->sales)) {
        size_t index = brains->begun++;
        brains->spec.begin(brains->spec.context, index, tg_brains_name(brains, index));
    }
    tick(brains, (size_t)tg_brains_find(brains, sale->name));
}

static const char *on_command(void *context, struct tg_sale *sale,
                              const Tidegate__V1__Command *command)
{
    if (command->kind != TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE || sale == NULL) {
        return "noted";
    }
    on_change(context, sale);
    return "honoured";
}

int tg_brains_start(struct tg_brains *brains, struct tg_app *app, const struct tg_brain_spec *spec,
                    const struct tg_bus_subject *subjects, size_t count)
{
    const struct tg_sales_spec sales = {.keys_folder = spec->keys_folder,
                                        .on_change = on_change,
                                        .on_command = on_command,
                                        .context = brains};
    brains->app = app;
    brains->spec = *spec;
    tg_term_begin(&brains->term, tg_app_instance(app), tg_now_mono(), random_jitter());
    int error = tg_sales_open(app, &sales, &brains->sales);
    if (error == 0) {
        error = tg_bus_serve_all(tg_app_bus(app), subjects, count, spec->context);
    }
    return error != 0 ? error : tg_app_every(app, TICK_MS, on_tick, brains);
}

bool tg_brains_ready(const struct tg_brains *brains, const char **out_why)
{
    if (!tg_bus_connected(tg_app_bus(brains->app))) {
        *out_why = "not connected to the bus";
        return false;
    }
    *out_why = "the ledger has not told the sales yet";
    return tg_sales_known(brains->sales);
}

void tg_brains_stop(struct tg_brains *brains)
{
    brains->sales = tg_sales_free(brains->sales);
}

void tg_brains_take(struct tg_brains *brains, struct tg_bus_incoming *take_incoming,
                    enum tg_reason fault, const void *event)
{
    int index = tg_brains_find(brains, tg_bus_sale(take_incoming));
    if (fault != TG_REASON_NONE) {
        tg_metric_add(TG_METRIC_BUS_INVALID, tg_bus_body(take_incoming)->descriptor->short_name, 1);
    } else if (index >= 0) {
        brains->spec.feed(brains->spec.context, (size_t)index, event);
    }
    tg_bus_release(take_incoming);
}

void tg_brains_say(struct tg_brains *brains, enum tg_message message, size_t index,
                   const ProtobufCMessage *body)
{
    if (tg_bus_publish(tg_app_bus(brains->app), message, tg_brains_name(brains, index), body) !=
        0) {
        tg_metric_add(TG_METRIC_BUS_CALL_FAILURES, "disconnected", 1);
    }
}

static const char *role_name(enum tg_term_role role)
{
    switch (role) {
    case TG_TERM_STANDBY:
        return "standby";
    case TG_TERM_COLLECTING:
        return "collecting";
    case TG_TERM_SETTLING:
        return "settling";
    case TG_TERM_ACTIVE:
        break;
    }
    return "active";
}

void tg_brains_tell_role(const struct tg_brains *brains, enum tg_term_role role, uint64_t number)
{
    tg_log(TG_LOG_INFO, brains->spec.role_event, TG_TEXT_FIELD("role", role_name(role)),
           TG_NUMBER_FIELD("term", number));
}
