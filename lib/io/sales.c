/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/sales_inner.h"

#include "lib/io/keys.h"
#include "lib/io/log.h"
#include "lib/io/now.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FETCH_EVERY_MS = 1000 };

static struct sales_entry *find(struct tg_sales *sales, const char *name)
{
    for (size_t i = 0; i < sales->entry_count; i++) {
        if (strcmp(sales->entries[i].sale.name, name) == 0) {
            return &sales->entries[i];
        }
    }
    return NULL;
}

struct sales_entry *sales_entry_take(struct tg_sales *sales, const char *name)
{
    struct sales_entry *entry = find(sales, name);
    size_t length = strlen(name);

    if (entry != NULL || !tg_sale_name_valid(name, length)) {
        return entry;
    }
    if (sales->entry_count == TG_MAX_SALES) {
        if (!sales->full_logged) {
            sales->full_logged = true;
            tg_log(TG_LOG_WARN, "sales.table_full", TG_TEXT_FIELD("sale", name));
        }
        return NULL;
    }
    entry = &sales->entries[sales->entry_count++];
    memcpy(entry->sale.name, name, length + 1);
    return entry;
}

void sales_changed(struct tg_sales *sales, struct sales_entry *entry)
{
    if (entry->defined && !entry->listed) {
        entry->listed = true;
        sales->listed[sales->listed_count++] = entry;
    }
    if (entry->defined && sales->spec.on_change != NULL) {
        sales->spec.on_change(sales->spec.context, &entry->sale);
    }
}

static void on_state(void *context, struct tg_bus_incoming *take_incoming)
{
    struct tg_sales *sales = context;
    const Tidegate__V1__SaleState *state =
        (const Tidegate__V1__SaleState *)tg_bus_body(take_incoming);
    struct sales_entry *entry = NULL;

    if (strcmp(state->sale, tg_bus_sale(take_incoming)) == 0) {
        entry = sales_entry_take(sales, state->sale);
    }
    if (entry != NULL && sales_state_take(entry, state, tg_now_mono())) {
        sales_changed(sales, entry);
    }
    tg_bus_release(take_incoming);
    sales_fetch(sales);
}

static void on_second(void *context)
{
    sales_fetch(context);
}

static int begin_listening(struct tg_sales *sales)
{
    int error = sales_command_listen(sales);

    if (error != 0 || sales->spec.without_state) {
        return error;
    }
    error = tg_bus_serve(tg_app_bus(sales->app), TG_MESSAGE_STATE, on_state, sales);
    if (error != 0) {
        return error;
    }
    return tg_app_every(sales->app, FETCH_EVERY_MS, on_second, sales);
}

static int read_ring(const char *folder, const char *name, struct tg_verify_key out_keys[3])
{
    size_t count = 0;
    int error = tg_keys_verify(folder, name, out_keys, &count);

    for (size_t i = count; error == 0 && i < 3; i++) {
        out_keys[i] = out_keys[0];
    }
    return error;
}

static int read_keys(void *context)
{
    struct tg_sales *sales = context;
    const char *folder = sales->spec.keys_folder;
    int error = read_ring(folder, "control-operator", sales->operator_keys);

    return error != 0 ? error : read_ring(folder, "control-invariant", sales->invariant_keys);
}

int tg_sales_open(struct tg_app *app, const struct tg_sales_spec *spec, struct tg_sales **out_sales)
{
    struct tg_sales *sales = calloc(1, sizeof(*sales));
    int error;

    if (sales == NULL) {
        return -ENOMEM;
    }
    sales->app = app;
    sales->spec = *spec;
    sales->entries = calloc(TG_MAX_SALES, sizeof(*sales->entries));
    error = sales->entries == NULL ? -ENOMEM : 0;
    if (error == 0) {
        error = read_keys(sales);
    }
    if (error == 0) {
        error = tg_app_on_reload(app, read_keys, sales);
    }
    if (error == 0) {
        error = begin_listening(sales);
    }
    if (error != 0) {
        tg_sales_free(sales);
        return error;
    }
    if (!spec->without_state) {
        sales_fetch(sales);
    }
    *out_sales = sales;
    return 0;
}

struct tg_sales *tg_sales_free(struct tg_sales *sales)
{
    if (sales != NULL) {
        free(sales->entries);
        free(sales);
    }
    return NULL;
}

struct tg_sale *tg_sales_find(struct tg_sales *sales, const char *name)
{
    struct sales_entry *entry = find(sales, name);

    return entry != NULL && entry->defined ? &entry->sale : NULL;
}

size_t tg_sales_count(const struct tg_sales *sales)
{
    return sales->listed_count;
}

struct tg_sale *tg_sales_at(struct tg_sales *sales, size_t index)
{
    assert(index < sales->listed_count);
    return &sales->listed[index]->sale;
}

bool tg_sales_known(const struct tg_sales *sales)
{
    return sales->known;
}

enum tg_reason tg_sales_missing(const struct tg_sales *sales)
{
    return tg_sales_known(sales) ? TG_REASON_SALE_UNKNOWN : TG_REASON_TRY_AGAIN;
}
