/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/sales_inner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { HOLD_MS_MIN = 1000, HOLD_MS_MAX = 86400000, GRACE_MS_MAX = 600000, EXTEND_MS_MAX = 3600000 };
enum { EXTENSIONS_MAX = 100, PROOF_MS_MIN = 100, PROOF_MS_MAX = 60000, CURRENCY_BYTES = 3 };
#define PRICE_MINOR_MAX UINT64_C(1000000000000)  /* x 64 units fits any sum */
#define PACE_MILLI_MAX UINT64_C(100000000)       /* 100,000 people per second */
#define OPENS_AT_MS_MAX INT64_C(253402300799999) /* the end of the year 9999 */

/* Where the sentence goes, until one was said. */
struct fault {
    char *text;
    size_t capacity;
    bool said;
};

__attribute__((format(printf, 2, 3))) static void say(struct fault *fault, const char *format, ...)
{
    va_list arguments;

    if (!fault->said) {
        va_start(arguments, format);
        vsnprintf(fault->text, fault->capacity, format, arguments);
        va_end(arguments);
        fault->said = true;
    }
}

static void in_range(struct fault *fault, const char *field, int64_t value, int64_t min,
                     int64_t max)
{
    if (value < min || value > max) {
        say(fault, "%s is %lld; expected %lld to %lld", field, (long long)value, (long long)min,
            (long long)max);
    }
}

static void in_range_unsigned(struct fault *fault, const char *field, uint64_t value, uint64_t min,
                              uint64_t max)
{
    if (value < min || value > max) {
        say(fault, "%s is %llu; expected %llu to %llu", field, (unsigned long long)value,
            (unsigned long long)min, (unsigned long long)max);
    }
}

static bool currency_valid(const char *text)
{
    return strlen(text) == CURRENCY_BYTES &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == CURRENCY_BYTES;
}

static void check_item(struct fault *fault, const Tidegate__V1__SaleDefinition *definition,
                       size_t index)
{
    const Tidegate__V1__ItemDefinition *item = definition->items[index];

    if (!tg_sale_name_valid(item->sku, strlen(item->sku))) {
        say(fault, "items[%zu].sku must be 1 to 64 characters of A-Z a-z 0-9 _ -", index);
        return;
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(definition->items[i]->sku, item->sku) == 0) {
            say(fault, "items[%zu].sku %s is named twice", index, item->sku);
        }
    }
    in_range_unsigned(fault, "items.units", item->units, 1, TG_MAX_UNITS_PER_ITEM);
    in_range_unsigned(fault, "items.price", item->price_minor, 0, PRICE_MINOR_MAX);
    if (!currency_valid(item->currency)) {
        say(fault, "items[%zu].currency must be three capital letters (ISO 4217)", index);
    } else if (strcmp(item->currency, definition->items[0]->currency) != 0) {
        say(fault, "items[%zu].currency must be %s as for the first item", index,
            definition->items[0]->currency);
    }
}

static void check_pace(struct fault *fault, const Tidegate__V1__SaleDefinition *definition)
{
    in_range_unsigned(fault, "pace.max (people per 1000 s)", definition->pace_max_milli, 1,
                      PACE_MILLI_MAX);
    in_range_unsigned(fault, "pace.min (people per 1000 s)", definition->pace_min_milli, 1,
                      definition->pace_max_milli);
    in_range_unsigned(fault, "pace.start (people per 1000 s)", definition->pace_start_milli,
                      definition->pace_min_milli, definition->pace_max_milli);
}

static bool text_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < 0x20 || *text > 0x7e) {
            return false;
        }
    }
    return true;
}

static void check_policy(struct fault *fault, const Tidegate__V1__SaleDefinition *definition)
{
    enum tg_order order;
    if (!tg_order_parse(definition->order, &order)) {
        say(fault, "policy.order must be fifo, random or lottery");
    } else if (order == TG_ORDER_FIFO) {
        if (definition->commitment.len != 0 || definition->beacon[0] != '\0') {
            say(fault, "policy.commitment and policy.beacon are of a draw; the order is fifo");
        }
    } else if (definition->commitment.len != TG_DRAW_BYTES) {
        say(fault, "policy.commitment must be sha256: and 64 hex digits (tidegatectl draw new)");
    }
    if (strlen(definition->beacon) > TG_MAX_BEACON_NAME_BYTES || !text_plain(definition->beacon)) {
        say(fault, "policy.beacon must be at most %d printable characters",
            TG_MAX_BEACON_NAME_BYTES);
    }
}

int tg_definition_check(const Tidegate__V1__SaleDefinition *definition, char *out_fault,
                        size_t capacity)
{
    struct fault fault = {.text = out_fault, .capacity = capacity};

    if (!tg_sale_name_valid(definition->sale, strlen(definition->sale))) {
        say(&fault, "sale must be 1 to 64 characters of A-Z a-z 0-9 _ -");
    }
    if (definition->n_items < 1 || definition->n_items > TG_MAX_ITEMS_PER_SALE) {
        say(&fault, "items has %zu entries; expected 1 to %d", definition->n_items,
            TG_MAX_ITEMS_PER_SALE);
    }
    for (size_t i = 0; i < definition->n_items && !fault.said; i++) {
        check_item(&fault, definition, i);
    }
    in_range(&fault, "opensAt (Unix ms)", definition->opens_at_ms, 0, OPENS_AT_MS_MAX);
    check_policy(&fault, definition);
    in_range(&fault, "limits.perBuyer", definition->limit_per_buyer, 1, TG_MAX_BUYER_LIMIT);
    in_range(&fault, "limits.holdFor (ms)", definition->hold_ms, HOLD_MS_MIN, HOLD_MS_MAX);
    in_range(&fault, "limits.grace (ms)", definition->grace_ms, 0, GRACE_MS_MAX);
    in_range(&fault, "limits.extendBy (ms)", definition->extend_ms, 0, EXTEND_MS_MAX);
    in_range(&fault, "limits.extensions", definition->extensions_max, 0, EXTENSIONS_MAX);
    check_pace(&fault, definition);
    in_range(&fault, "proof.everyMs", definition->proof_every_ms, PROOF_MS_MIN, PROOF_MS_MAX);
    in_range(&fault, "proof.leaseFor (ms)", definition->proof_lease_ms,
             2 * definition->proof_every_ms, PROOF_MS_MAX);
    in_range(&fault, "shards", definition->shards, 1, 1);
    in_range(&fault, "policy.challenge", definition->challenge, TG_CHALLENGE_NONE,
             TG_CHALLENGE_PASS);
    return fault.said ? TG_ERR_RANGE : 0;
}

void tg_definition_digest(const Tidegate__V1__SaleDefinition *definition,
                          uint8_t out_digest[TG_DIGEST_BYTES])
{
    struct tg_mac mac;

    tg_mac_begin(&mac, NULL, "tidegate definition");
    tg_mac_text(&mac, definition->sale);
    tg_mac_number(&mac, definition->n_items);
    for (size_t i = 0; i < definition->n_items; i++) {
        tg_mac_text(&mac, definition->items[i]->sku);
        tg_mac_number(&mac, definition->items[i]->units);
        tg_mac_number(&mac, definition->items[i]->price_minor);
        tg_mac_text(&mac, definition->items[i]->currency);
    }
    tg_mac_number(&mac, (uint64_t)definition->opens_at_ms);
    tg_mac_text(&mac, definition->order);
    tg_mac_number(&mac, definition->limit_per_buyer);
    tg_mac_number(&mac, (uint64_t)definition->hold_ms);
    tg_mac_number(&mac, (uint64_t)definition->grace_ms);
    tg_mac_number(&mac, (uint64_t)definition->extend_ms);
    tg_mac_number(&mac, definition->extensions_max);
    tg_mac_number(&mac, definition->pace_start_milli);
    tg_mac_number(&mac, definition->pace_min_milli);
    tg_mac_number(&mac, definition->pace_max_milli);
    tg_mac_number(&mac, (uint64_t)definition->proof_every_ms);
    tg_mac_number(&mac, (uint64_t)definition->proof_lease_ms);
    tg_mac_number(&mac, definition->remaining_bucketed);
    tg_mac_number(&mac, definition->shards);
    tg_mac_number(&mac, definition->challenge);
    tg_mac_field(&mac, definition->commitment.data, definition->commitment.len);
    tg_mac_text(&mac, definition->beacon);
    tg_mac_end(&mac, out_digest, TG_DIGEST_BYTES);
}

static void read_item(const Tidegate__V1__ItemDefinition *item, struct tg_item *out_item)
{
    memcpy(out_item->sku, item->sku, strlen(item->sku) + 1);
    out_item->units = item->units;
    out_item->price_minor = item->price_minor;
    memcpy(out_item->currency, item->currency, sizeof(out_item->currency));
}

void tg_definition_read(const Tidegate__V1__SaleDefinition *definition, struct tg_sale *sale)
{
    memcpy(sale->name, definition->sale, strlen(definition->sale) + 1);
    tg_definition_digest(definition, sale->definition_digest);
    sale->item_count = (uint32_t)definition->n_items;
    for (size_t i = 0; i < definition->n_items; i++) {
        read_item(definition->items[i], &sale->items[i]);
    }
    sale->opens_at = (struct tg_wall){definition->opens_at_ms};
    (void)tg_order_parse(definition->order, &sale->order);
    memset(sale->commitment, 0, sizeof(sale->commitment));
    if (definition->commitment.len > 0) {
        memcpy(sale->commitment, definition->commitment.data, sizeof(sale->commitment));
    }
    memcpy(sale->beacon, definition->beacon, strlen(definition->beacon) + 1);
    sale->limit_per_buyer = definition->limit_per_buyer;
    sale->hold_ms = definition->hold_ms;
    sale->grace_ms = definition->grace_ms;
    sale->extend_ms = definition->extend_ms;
    sale->extensions_max = definition->extensions_max;
    sale->pace_start_milli = definition->pace_start_milli;
    sale->pace_min_milli = definition->pace_min_milli;
    sale->pace_max_milli = definition->pace_max_milli;
    sale->proof_every_ms = definition->proof_every_ms;
    sale->proof_lease_ms = definition->proof_lease_ms;
    sale->remaining_bucketed = definition->remaining_bucketed;
    sale->shards = definition->shards;
    sale->challenge = definition->challenge;
}
