/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/demand.h"

#include "lib/pure/text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { MEMBER_BYTES_SHOWN = 64 };

/* A long name is cut, never within a character: the sentence goes into a JSON document. */
static enum tg_reason fault(char out_fault[EDGE_FAULT_BYTES], const char *member,
                            const char *sentence)
{
    size_t length = strnlen(member, MEMBER_BYTES_SHOWN);
    while (length > 0 && !tg_utf8_valid((const uint8_t *)member, length)) {
        length--;
    }
    snprintf(out_fault, EDGE_FAULT_BYTES, "%.*s: %s", (int)length, member, sentence);
    return TG_REASON_MALFORMED;
}

/* Members are exactly these. Returns NONE or names the first stranger. */
static enum tg_reason only_members(const json_t *object, const char *const *names, size_t count,
                                   const char *expected, char out_fault[EDGE_FAULT_BYTES])
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        size_t i = 0;
        while (i < count && strcmp(names[i], name) != 0) {
            i++;
        }
        if (i == count) {
            return fault(out_fault, name, expected);
        }
    }
    return TG_REASON_NONE;
}

/* The body as an object. *out_object is to be given to json_decref. */
static enum tg_reason load(const char *body, size_t length, json_t **out_object,
                           char out_fault[EDGE_FAULT_BYTES])
{
    json_error_t error;
    json_t *document = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
    if (document == NULL) {
        return fault(out_fault, "body",
                     json_error_code(&error) == json_error_duplicate_key
                         ? "a member comes twice"
                         : "not a JSON document in UTF-8");
    }
    if (!json_is_object(document)) {
        json_decref(document);
        return fault(out_fault, "body", "expected an object");
    }
    *out_object = document;
    return TG_REASON_NONE;
}

static enum tg_reason add(const struct tg_sale *sale, const json_t *row,
                          uint64_t quantities[TG_MAX_ITEMS_PER_SALE],
                          char out_fault[EDGE_FAULT_BYTES])
{
    static const char *const names[] = {"sku", "quantity"};
    if (!json_is_object(row)) {
        return fault(out_fault, "items", "expected an array of objects");
    }
    enum tg_reason reason =
        only_members(row, names, 2, "unknown member; expected sku and quantity", out_fault);
    if (reason != TG_REASON_NONE) {
        return reason;
    }
    const json_t *sku = json_object_get(row, "sku"), *quantity = json_object_get(row, "quantity");
    if (!json_is_string(sku)) {
        return fault(out_fault, "sku", "expected a string");
    }
    if (!json_is_integer(quantity)) {
        return fault(out_fault, "quantity", "expected a whole number");
    }
    int item = tg_sale_item(sale, json_string_value(sku));
    if (item < 0) {
        fault(out_fault, "sku", "the sale has no such item");
        return TG_REASON_ITEM_UNKNOWN;
    }
    json_int_t wanted = json_integer_value(quantity);
    if (wanted < 1 || wanted > (json_int_t)sale->limit_per_buyer) {
        snprintf(out_fault, EDGE_FAULT_BYTES, "quantity: expected 1 to %u", sale->limit_per_buyer);
        return TG_REASON_QUANTITY_INVALID;
    }
    quantities[item] += (uint64_t)wanted;
    return TG_REASON_NONE;
}

static enum tg_reason read_items(const struct tg_sale *sale, const json_t *object,
                                 uint64_t quantities[TG_MAX_ITEMS_PER_SALE],
                                 char out_fault[EDGE_FAULT_BYTES])
{
    static const char *const names[] = {"items"};
    if (json_object_get(object, "seats") != NULL) {
        return fault(out_fault, "seats", "this sale has no numbered seats; use items");
    }
    enum tg_reason reason =
        only_members(object, names, 1, "unknown member; expected items", out_fault);
    if (reason != TG_REASON_NONE) {
        return reason;
    }
    const json_t *items = json_object_get(object, "items");
    if (!json_is_array(items) || json_array_size(items) == 0 ||
        json_array_size(items) > TG_MAX_UNITS_PER_HOLD) {
        return fault(out_fault, "items", "expected an array of 1 to 64 objects");
    }
    for (size_t i = 0; i < json_array_size(items) && reason == TG_REASON_NONE; i++) {
        reason = add(sale, json_array_get(items, i), quantities, out_fault);
    }
    return reason;
}

/* Sums into rows and digest. */
static enum tg_reason finish(const struct tg_sale *sale,
                             const uint64_t quantities[TG_MAX_ITEMS_PER_SALE],
                             struct edge_demand *out_demand, char out_fault[EDGE_FAULT_BYTES])
{
    struct tg_mac mac;
    uint64_t total = 0;
    out_demand->count = 0;
    tg_mac_begin(&mac, NULL, "demand");
    for (uint32_t item = 0; item < sale->item_count; item++) {
        if (quantities[item] == 0) {
            continue;
        }
        total += quantities[item];
        out_demand->rows[out_demand->count].item = item;
        out_demand->rows[out_demand->count].quantity = (uint32_t)quantities[item];
        out_demand->count++;
        tg_mac_text(&mac, sale->items[item].sku);
        tg_mac_number(&mac, quantities[item]);
    }
    tg_mac_end(&mac, out_demand->digest, sizeof(out_demand->digest));
    if (total > sale->limit_per_buyer || total > TG_MAX_UNITS_PER_HOLD) {
        snprintf(out_fault, EDGE_FAULT_BYTES, "quantity: expected 1 to %u in all",
                 sale->limit_per_buyer);
        return TG_REASON_QUANTITY_INVALID;
    }
    return TG_REASON_NONE;
}

enum tg_reason edge_demand(const struct tg_sale *sale, const char *body, size_t length,
                           struct edge_demand *out_demand, char out_fault[EDGE_FAULT_BYTES])
{
    uint64_t quantities[TG_MAX_ITEMS_PER_SALE] = {0};
    if (length == 0) {
        if (sale->item_count != 1) {
            return fault(out_fault, "items", "required: this sale has several");
        }
        quantities[0] = 1;
        return finish(sale, quantities, out_demand, out_fault);
    }
    json_t *object = NULL;
    enum tg_reason reason = load(body, length, &object, out_fault);
    if (reason != TG_REASON_NONE) {
        return reason;
    }
    reason = read_items(sale, object, quantities, out_fault);
    json_decref(object);
    return reason == TG_REASON_NONE ? finish(sale, quantities, out_demand, out_fault) : reason;
}

static enum tg_reason read_payment(const json_t *object, struct edge_payment *out_payment,
                                   char out_fault[EDGE_FAULT_BYTES])
{
    static const char *const names[] = {"paymentId", "amount", "currency"};
    enum tg_reason reason = only_members(
        object, names, 3, "unknown member; expected paymentId, amount, currency", out_fault);
    if (reason != TG_REASON_NONE) {
        return reason;
    }
    const char *id = json_string_value(json_object_get(object, names[0]));
    const json_t *amount = json_object_get(object, names[1]);
    const char *currency = json_string_value(json_object_get(object, names[2]));
    size_t id_length = id != NULL ? strlen(id) : 0;
    if (id_length == 0 || id_length > TG_MAX_PAYMENT_ID_BYTES ||
        !tg_user_valid((const uint8_t *)id, id_length)) {
        return fault(out_fault, names[0],
                     "expected a string of 1 to 128 bytes without control characters");
    }
    if (!json_is_integer(amount) || json_integer_value(amount) < 0) {
        return fault(out_fault, names[1], "expected a whole number of minor units, 0 or more");
    }
    if (currency == NULL || strlen(currency) != 3 ||
        strspn(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3) {
        return fault(out_fault, names[2], "expected three capital letters");
    }
    memcpy(out_payment->id, id, id_length + 1);
    out_payment->amount_minor = (uint64_t)json_integer_value(amount);
    memcpy(out_payment->currency, currency, 4);
    return TG_REASON_NONE;
}

enum tg_reason edge_payment(const char *body, size_t length, struct edge_payment *out_payment,
                            char out_fault[EDGE_FAULT_BYTES])
{
    json_t *object = NULL;
    enum tg_reason reason = load(body, length, &object, out_fault);
    if (reason == TG_REASON_NONE) {
        reason = read_payment(object, out_payment, out_fault);
        json_decref(object);
    }
    return reason;
}
