/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/sales_inner.h"

#include "lib/io/log.h"
#include "lib/io/now.h"

#include <stdint.h>
#include <string.h>

enum { FETCH_TIMEOUT_MS = 900, FETCH_PAUSE_MS = 200 };

static void send_page(struct tg_sales *sales);

static void take_reply(struct tg_sales *sales, const Tidegate__V1__SalesReply *reply)
{
    for (size_t i = 0; i < reply->n_definitions; i++) {
        struct sales_entry *entry = sales_entry_take(sales, reply->definitions[i]->sale);
        if (entry != NULL && sales_definition_take(entry, reply->definitions[i])) {
            sales_changed(sales, entry);
        }
    }
    for (size_t i = 0; i < reply->n_states; i++) {
        struct sales_entry *entry = sales_entry_take(sales, reply->states[i]->sale);
        if (entry != NULL && sales_state_take(entry, reply->states[i], tg_now_mono())) {
            sales_changed(sales, entry);
        }
    }
}

/* The next page, if there is one: pages must advance, and there are at most as many as sales. */
static bool advance(struct tg_sales *sales, const Tidegate__V1__SalesReply *reply)
{
    const char *last;
    size_t length;

    if (reply->end || sales->fetch_one[0] != '\0' || reply->n_definitions == 0 ||
        ++sales->fetch_pages > TG_MAX_SALES) {
        return false;
    }
    last = reply->definitions[reply->n_definitions - 1]->sale;
    length = strlen(last);
    if (!tg_sale_name_valid(last, length) || strcmp(last, sales->fetch_after) <= 0) {
        return false;
    }
    memcpy(sales->fetch_after, last, length + 1);
    return true;
}

static void on_page(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct tg_sales *sales = context;
    const Tidegate__V1__SalesReply *page = (const Tidegate__V1__SalesReply *)reply;

    (void)token;
    sales->fetching = false;
    if (status != 0) {
        return; /* asked again every second */
    }
    take_reply(sales, page);
    if (advance(sales, page)) {
        send_page(sales);
        return;
    }
    if (!sales->known && sales->fetch_one[0] == '\0') {
        sales->known = true;
        tg_log(TG_LOG_INFO, "sales.known", TG_NUMBER_FIELD("sales", tg_sales_count(sales)));
    }
}

static void send_page(struct tg_sales *sales)
{
    Tidegate__V1__SalesRequest request = TIDEGATE__V1__SALES_REQUEST__INIT;

    request.sale = sales->fetch_one;
    request.after = sales->fetch_after;
    sales->fetching = tg_bus_call(tg_app_bus(sales->app), TG_MESSAGE_LEDGER_SALES, NULL,
                                  &request.base, NULL, FETCH_TIMEOUT_MS, on_page, sales, 0) == 0;
}

/* One that was announced and is missing; the scan starts behind the last one asked, so that none
 * starves. */
static const char *missing(struct tg_sales *sales)
{
    for (size_t i = 0; i < sales->entry_count; i++) {
        size_t at = (sales->fetch_next + i) % sales->entry_count;
        if (sales->entries[at].wanted) {
            sales->fetch_next = at + 1;
            return sales->entries[at].sale.name;
        }
    }
    return NULL;
}

void sales_fetch(struct tg_sales *sales)
{
    struct tg_mono now = tg_now_mono();
    const char *one = NULL;

    if (sales->fetching || !tg_bus_connected(tg_app_bus(sales->app)) ||
        now.ms < sales->fetch_not_before.ms) {
        return;
    }
    if (sales->known) {
        one = missing(sales);
        if (one == NULL) {
            return;
        }
    }
    memcpy(sales->fetch_one, one == NULL ? "" : one, one == NULL ? 1 : strlen(one) + 1);
    sales->fetch_after[0] = '\0';
    sales->fetch_pages = 0;
    /* A definition that never matches its digest must not become a stream of questions. */
    sales->fetch_not_before = (struct tg_mono){now.ms + FETCH_PAUSE_MS};
    send_page(sales);
}
