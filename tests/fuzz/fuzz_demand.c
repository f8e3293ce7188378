/* SPDX-License-Identifier: Apache-2.0
 * Bodies of reserve and confirm. What is accepted is within the sale's limits, and saying it again
 * in the plainest form gives the same wish and the same digest; what is refused comes with one
 * sentence of valid UTF-8. */
#include "tests/fuzz/fuzz.h"

#include "lib/pure/text.h"
#include "services/edge/demand.h"

#include <jansson.h>

static const struct tg_sale sales[] = {
    {.name = "one", .item_count = 1, .items = {{.sku = "a"}}, .limit_per_buyer = 4},
    {.name = "three",
     .item_count = 3,
     .items = {{.sku = "a"}, {.sku = "b"}, {.sku = "c-3"}},
     .limit_per_buyer = 64},
};

static void check_fault(enum tg_reason reason, const char *fault)
{
    size_t length = strnlen(fault, EDGE_FAULT_BYTES);
    HOLDS(length < EDGE_FAULT_BYTES);
    HOLDS(reason == TG_REASON_NONE || length > 0);
    HOLDS(tg_utf8_valid((const uint8_t *)fault, length));
}

static size_t say_again(const struct tg_sale *sale, const struct edge_demand *demand,
                        char out_body[1024])
{
    size_t used = (size_t)snprintf(out_body, 1024, "{\"items\":[");
    for (uint32_t i = 0; i < demand->count; i++) {
        used += (size_t)snprintf(out_body + used, 1024 - used, "%s{\"sku\":\"%s\",\"quantity\":%u}",
                                 i > 0 ? "," : "", sale->items[demand->rows[i].item].sku,
                                 demand->rows[i].quantity);
    }
    return used + (size_t)snprintf(out_body + used, 1024 - used, "]}");
}

static void check_demand(const struct tg_sale *sale, const char *body, size_t length)
{
    struct edge_demand demand, again;
    char fault[EDGE_FAULT_BYTES] = "", text[1024];
    uint64_t total = 0;
    enum tg_reason reason = edge_demand(sale, body, length, &demand, fault);
    check_fault(reason, fault);
    if (reason != TG_REASON_NONE) {
        return;
    }
    HOLDS(demand.count >= 1 && demand.count <= sale->item_count);
    for (uint32_t i = 0; i < demand.count; i++) {
        HOLDS(demand.rows[i].item < sale->item_count && demand.rows[i].quantity >= 1);
        HOLDS(i == 0 || demand.rows[i].item > demand.rows[i - 1].item);
        total += demand.rows[i].quantity;
    }
    HOLDS(total <= sale->limit_per_buyer && total <= TG_MAX_UNITS_PER_HOLD);
    size_t written = say_again(sale, &demand, text);
    HOLDS(edge_demand(sale, text, written, &again, fault) == TG_REASON_NONE);
    HOLDS(again.count == demand.count);
    HOLDS(memcmp(again.rows, demand.rows, demand.count * sizeof(demand.rows[0])) == 0);
    HOLDS(memcmp(again.digest, demand.digest, sizeof(demand.digest)) == 0);
}

static void check_payment(const char *body, size_t length)
{
    struct edge_payment payment, again;
    char fault[EDGE_FAULT_BYTES] = "";
    enum tg_reason reason = edge_payment(body, length, &payment, fault);
    check_fault(reason, fault);
    if (reason != TG_REASON_NONE) {
        return;
    }
    HOLDS(payment.amount_minor <= INT64_MAX && strlen(payment.currency) == 3);
    HOLDS(tg_user_valid((const uint8_t *)payment.id, strlen(payment.id)));
    json_t *object = json_pack("{s:s, s:I, s:s}", "paymentId", payment.id, "amount",
                               (json_int_t)payment.amount_minor, "currency", payment.currency);
    char *text = json_dumps(object, JSON_COMPACT);
    HOLDS(text != NULL && edge_payment(text, strlen(text), &again, fault) == TG_REASON_NONE);
    HOLDS(strcmp(again.id, payment.id) == 0 && again.amount_minor == payment.amount_minor);
    free(text);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0 || size > TG_MAX_HTTP_BODY_BYTES) {
        return 0;
    }
    const char *body = (const char *)bytes + 1;
    if (bytes[0] % 3 == 2) {
        check_payment(body, size - 1);
    } else {
        check_demand(&sales[bytes[0] % 3], body, size - 1);
    }
    return 0;
}
