/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/sale_file.h"

#include "lib/io/sales.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"
#include "tools/tidegatectl/yaml_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)

/* ---- the form ---- */

struct item_values {
    char sku[TG_MAX_SKU_BYTES + 1];
    char currency[4];
    int64_t units, price;
};

struct sale_values {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    yaml_node_t *items, *policy, *limits, *pace, *proof, *show;
    int64_t opens_at;
    int64_t order, sign_in, challenge;
    char commitment[TG_MAX_BEACON_NAME_BYTES + 1];
    char beacon[TG_MAX_BEACON_NAME_BYTES + 1];
    int64_t per_buyer, hold_for, grace, extend_by, extensions;
    int64_t pace_start, pace_min, pace_max;
    int64_t every_ms, lease_for;
    int64_t remaining;
};

#define AT(member) offsetof(struct sale_values, member)

static const struct yaml_field top_fields[] = {
    {.name = "sale", .kind = YAML_KIND_NAME, .required = true, .offset = AT(sale)},
    {.name = "items", .kind = YAML_KIND_NODE, .required = true, .offset = AT(items)},
    {.name = "opensAt", .kind = YAML_KIND_INSTANT, .required = true, .offset = AT(opens_at)},
    {.name = "policy", .kind = YAML_KIND_NODE, .offset = AT(policy)},
    {.name = "limits", .kind = YAML_KIND_NODE, .offset = AT(limits)},
    {.name = "pace", .kind = YAML_KIND_NODE, .offset = AT(pace)},
    {.name = "proof", .kind = YAML_KIND_NODE, .offset = AT(proof)},
    {.name = "show", .kind = YAML_KIND_NODE, .offset = AT(show)},
};
static const struct yaml_field policy_fields[] = {
    {.name = "order",
     .kind = YAML_KIND_CHOICE,
     .choices = {"fifo", "random", "lottery"},
     .offset = AT(order)},
    {.name = "signIn",
     .kind = YAML_KIND_CHOICE,
     .choices = {"pass", "ticket"},
     .offset = AT(sign_in)},
    {.name = "commitment", .kind = YAML_KIND_TEXT, .offset = AT(commitment)},
    {.name = "beacon", .kind = YAML_KIND_TEXT, .offset = AT(beacon)},
    {.name = "challenge",
     .kind = YAML_KIND_CHOICE,
     .choices = {"none", "ticket", "pass"},
     .offset = AT(challenge)},
};
static const struct yaml_field limit_fields[] = {
    {.name = "perBuyer",
     .kind = YAML_KIND_INTEGER,
     .min = 1,
     .max = TG_MAX_BUYER_LIMIT,
     .offset = AT(per_buyer)},
    {.name = "holdFor",
     .kind = YAML_KIND_DURATION,
     .min = 1000,
     .max = 24 * HOUR_MS,
     .offset = AT(hold_for)},
    {.name = "grace", .kind = YAML_KIND_DURATION, .min = 0, .max = 600000, .offset = AT(grace)},
    {.name = "extendBy",
     .kind = YAML_KIND_DURATION,
     .min = 0,
     .max = HOUR_MS,
     .offset = AT(extend_by)},
    {.name = "extensions",
     .kind = YAML_KIND_INTEGER,
     .min = 0,
     .max = 100,
     .offset = AT(extensions)},
};
static const struct yaml_field pace_fields[] = {
    {.name = "start", .kind = YAML_KIND_PACE, .min = 1, .max = 100000, .offset = AT(pace_start)},
    {.name = "max", .kind = YAML_KIND_PACE, .min = 1, .max = 100000, .offset = AT(pace_max)},
    {.name = "min", .kind = YAML_KIND_PACE, .min = 1, .max = 100000, .offset = AT(pace_min)},
};
static const struct yaml_field proof_fields[] = {
    {.name = "everyMs",
     .kind = YAML_KIND_INTEGER,
     .min = 100,
     .max = 60000,
     .offset = AT(every_ms)},
    {.name = "leaseFor",
     .kind = YAML_KIND_DURATION,
     .min = 500,
     .max = 60000,
     .offset = AT(lease_for)},
};
static const struct yaml_field show_fields[] = {
    {.name = "remaining",
     .kind = YAML_KIND_CHOICE,
     .choices = {"exact", "bucketed"},
     .offset = AT(remaining)},
};
static const struct yaml_field item_fields[] = {
    {.name = "sku",
     .kind = YAML_KIND_NAME,
     .required = true,
     .offset = offsetof(struct item_values, sku)},
    {.name = "units",
     .kind = YAML_KIND_INTEGER,
     .required = true,
     .min = 1,
     .max = TG_MAX_UNITS_PER_ITEM,
     .offset = offsetof(struct item_values, units)},
    {.name = "price",
     .kind = YAML_KIND_INTEGER,
     .required = true,
     .min = 0,
     .max = 1000000000000,
     .offset = offsetof(struct item_values, price)}, /* minor units */
    {.name = "currency",
     .kind = YAML_KIND_CURRENCY,
     .required = true,
     .offset = offsetof(struct item_values, currency)},
};

#define COUNT(fields) (sizeof(fields) / sizeof((fields)[0]))

static const struct sale_values defaults = {.beacon = "none",
                                            .per_buyer = 1,
                                            .hold_for = 600000,
                                            .grace = 30000,
                                            .extend_by = 60000,
                                            .extensions = 2,
                                            .sign_in = -1,
                                            .pace_start = 1000000,
                                            .pace_min = 10000,
                                            .pace_max = 5000000,
                                            .every_ms = 1000,
                                            .lease_for = 3000};

int ctl_pace_parse(const char *text, uint64_t *out_pace_milli)
{
    enum { PACE_MAX = 1000000 };
    size_t length = strlen(text);
    uint64_t people = 0;
    if (length < 2 || strcmp(text + length - 2, "/s") != 0) {
        return TG_ERR_MALFORMED;
    }
    int error = tg_unsigned_parse(text, length - 2, PACE_MAX, &people);
    if (error == 0) {
        *out_pace_milli = people * 1000;
    }
    return error;
}

/* ---- the document ---- */

static void read_sections(struct yaml_reading *reading, struct sale_values *values)
{
    const struct {
        yaml_node_t *node;
        const char *path;
        const struct yaml_field *fields;
        size_t count;
    } sections[] = {
        {values->policy, "policy.", policy_fields, COUNT(policy_fields)},
        {values->limits, "limits.", limit_fields, COUNT(limit_fields)},
        {values->pace, "pace.", pace_fields, COUNT(pace_fields)},
        {values->proof, "proof.", proof_fields, COUNT(proof_fields)},
        {values->show, "show.", show_fields, COUNT(show_fields)},
    };
    for (size_t i = 0; i < COUNT(sections); i++) {
        if (sections[i].node != NULL) {
            yaml_read_fields(reading, sections[i].node, sections[i].path, sections[i].fields,
                             sections[i].count, values);
        }
    }
}

static bool sku_known(const struct ctl_sale_file *file, size_t count, const char *sku)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(file->skus[i], sku) == 0) {
            return true;
        }
    }
    return false;
}

static void take_item(struct ctl_sale_file *file, size_t index, const struct item_values *values)
{
    Tidegate__V1__ItemDefinition *item = &file->items[index];
    tidegate__v1__item_definition__init(item);
    memcpy(file->skus[index], values->sku, sizeof(file->skus[index]));
    memcpy(file->currencies[index], values->currency, sizeof(file->currencies[index]));
    item->sku = file->skus[index];
    item->currency = file->currencies[index];
    item->units = (uint32_t)values->units;
    item->price_minor = (uint64_t)values->price;
    file->item_pointers[index] = item;
}

static void read_items(struct yaml_reading *reading, yaml_node_t *node, struct ctl_sale_file *file)
{
    size_t count = node->type == YAML_SEQUENCE_NODE
                       ? (size_t)(node->data.sequence.items.top - node->data.sequence.items.start)
                       : 0;
    if (count < 1 || count > TG_MAX_ITEMS_PER_SALE) {
        yaml_fault(reading, node, "items", "expected a list of 1 to %d items",
                   TG_MAX_ITEMS_PER_SALE);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct item_values values = {0};
        char path[32];
        yaml_node_t *item =
            yaml_document_get_node(reading->document, node->data.sequence.items.start[i]);
        (void)snprintf(path, sizeof(path), "items[%zu].", i);
        yaml_read_fields(reading, item, path, item_fields, COUNT(item_fields), &values);
        if (values.sku[0] != '\0' && sku_known(file, i, values.sku)) {
            yaml_fault(reading, item, "items", "sku %s is given twice", values.sku);
        }
        take_item(file, i, &values);
        if (values.currency[0] != '\0' && strcmp(values.currency, file->currencies[0]) != 0) {
            yaml_fault(reading, item, "items", "expected one currency for all items, got %s and %s",
                       file->currencies[0], values.currency);
        }
    }
    file->definition.n_items = count;
    file->definition.items = file->item_pointers;
}

/* "sha256:" and 64 hex digits, of a draw; none of an order of arrival. */
static void check_policy(struct yaml_reading *reading, const struct sale_values *values)
{
    static const char prefix[] = "sha256:";
    const char *hex = values->commitment + sizeof(prefix) - 1;
    uint8_t commitment[32];
    bool draws = values->order != 0;
    bool promised = strncmp(values->commitment, prefix, sizeof(prefix) - 1) == 0 &&
                    tg_hex_decode(hex, strlen(hex), commitment, sizeof(commitment)) == 0;
    if (draws && !promised) {
        yaml_fault(reading, values->policy, "policy.commitment",
                   "expected sha256: and 64 hex digits (tidegatectl draw new SALE), got %s",
                   values->commitment[0] != '\0' ? values->commitment : "nothing");
    }
    if (!draws && (values->commitment[0] != '\0' || strcmp(values->beacon, "none") != 0)) {
        yaml_fault(reading, values->policy, "policy",
                   "expected neither commitment nor beacon: nothing is drawn under fifo");
    }
    if (values->sign_in >= 0 && (values->sign_in == 1) != draws) {
        yaml_fault(reading, values->policy, "policy.signIn",
                   "expected %s: a draw counts accounts, an order of arrival does not",
                   draws ? "ticket" : "pass");
    }
}

/* Fields that are good each by itself and not together. */
static void check_together(struct yaml_reading *reading, const struct sale_values *values)
{
    check_policy(reading, values);
    if (values->pace_min > values->pace_start || values->pace_start > values->pace_max) {
        yaml_fault(reading, values->pace, "pace", "expected min <= start <= max");
    }
    if (values->lease_for < 2 * values->every_ms) {
        yaml_fault(reading, values->proof, "proof.leaseFor",
                   "expected at least twice everyMs: one late round must not close the gate");
    }
}

static void take_values(struct ctl_sale_file *file, const struct sale_values *values)
{
    Tidegate__V1__SaleDefinition *definition = &file->definition;
    memcpy(file->sale, values->sale, sizeof(file->sale));
    (void)snprintf(file->order, sizeof(file->order), "%s", policy_fields[0].choices[values->order]);
    definition->sale = file->sale;
    definition->order = file->order;
    if (values->order != 0) {
        const char *hex = values->commitment + sizeof("sha256:") - 1;
        definition->commitment.len = sizeof(file->commitment);
        definition->commitment.data = file->commitment;
        if (tg_hex_decode(hex, strlen(hex), file->commitment, sizeof(file->commitment)) != 0) {
            definition->commitment.len = 0; /* check_policy has refused it */
        }
    }
    if (strcmp(values->beacon, "none") != 0) {
        memcpy(file->beacon, values->beacon, sizeof(file->beacon));
    }
    definition->beacon = file->beacon;
    definition->opens_at_ms = values->opens_at;
    definition->limit_per_buyer = (uint32_t)values->per_buyer;
    definition->hold_ms = values->hold_for;
    definition->grace_ms = values->grace;
    definition->extend_ms = values->extend_by;
    definition->extensions_max = (uint32_t)values->extensions;
    definition->pace_start_milli = (uint64_t)values->pace_start;
    definition->pace_min_milli = (uint64_t)values->pace_min;
    definition->pace_max_milli = (uint64_t)values->pace_max;
    definition->proof_every_ms = values->every_ms;
    definition->proof_lease_ms = values->lease_for;
    definition->remaining_bucketed = values->remaining == 1;
    definition->shards = 1;
    definition->challenge = (uint32_t)values->challenge;
}

static void read_document(struct yaml_reading *reading, struct ctl_sale_file *file)
{
    struct sale_values values = defaults;
    char fault[256];
    yaml_node_t *root = yaml_document_get_root_node(reading->document);
    if (root == NULL) {
        yaml_fault(reading, NULL, "",
                   "expected a mapping with sale, items and opensAt, got nothing");
        return;
    }
    yaml_read_fields(reading, root, "", top_fields, COUNT(top_fields), &values);
    read_sections(reading, &values);
    if (values.items != NULL) {
        read_items(reading, values.items, file);
    }
    if (reading->faults == 0) {
        check_together(reading, &values);
    }
    if (reading->faults > 0) {
        return;
    }
    take_values(file, &values);
    if (tg_definition_check(&file->definition, fault, sizeof(fault)) != 0) {
        yaml_fault(reading, NULL, "", "%s", fault);
    }
}

/* One document and nothing behind it. */
static void read_stream(struct yaml_reading *reading, yaml_parser_t *parser,
                        struct ctl_sale_file *file)
{
    yaml_document_t document;
    yaml_document_t behind;
    if (yaml_parser_load(parser, &document) == 0) {
        yaml_fault(reading, NULL, "", "line %zu: no YAML: %s", parser->problem_mark.line + 1,
                   parser->problem != NULL ? parser->problem : "not understood");
        return;
    }
    reading->document = &document;
    read_document(reading, file);
    if (reading->faults == 0 && yaml_parser_load(parser, &behind) == 0) {
        yaml_fault(reading, NULL, "", "line %zu: no YAML: %s", parser->problem_mark.line + 1,
                   parser->problem != NULL ? parser->problem : "not understood");
    } else if (reading->faults == 0) {
        if (yaml_document_get_root_node(&behind) != NULL) {
            yaml_fault(reading, yaml_document_get_root_node(&behind), "",
                       "expected one document, got a second one");
        }
        yaml_document_delete(&behind);
    }
    yaml_document_delete(&document);
    reading->document = NULL;
}

int ctl_sale_file_parse(const char *name, const char *text, size_t length, FILE *errors,
                        struct ctl_sale_file *out_file)
{
    struct yaml_reading reading = {
        .name = name, .errors = errors, .faults_max = CTL_SALE_FILE_FAULTS_MAX};
    yaml_parser_t parser;
    memset(out_file, 0, sizeof(*out_file));
    tidegate__v1__sale_definition__init(&out_file->definition);
    if (length > CTL_SALE_FILE_BYTES) {
        yaml_fault(&reading, NULL, "", "expected at most %d bytes", CTL_SALE_FILE_BYTES);
        return TG_ERR_MALFORMED;
    }
    if (yaml_parser_initialize(&parser) == 0) {
        return -ENOMEM;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    read_stream(&reading, &parser, out_file);
    yaml_parser_delete(&parser);
    if (reading.faults > reading.faults_max) {
        (void)fprintf(errors, "%s: and %u more\n", name, reading.faults - reading.faults_max);
    }
    return reading.faults == 0 ? 0 : TG_ERR_MALFORMED;
}

int ctl_sale_file_read(const char *path, FILE *errors, struct ctl_sale_file *out_file)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    if (file == NULL) {
        int error = errno;
        (void)fprintf(errors, "%s: %s\n", path, tg_error_text(-error));
        return -error;
    }
    char *text = malloc(CTL_SALE_FILE_BYTES + 1);
    size_t length = text != NULL ? fread(text, 1, CTL_SALE_FILE_BYTES + 1, file) : 0;
    int error = text == NULL ? -ENOMEM : ferror(file) != 0 ? -errno : 0; /* EISDIR, say */
    if (!standard) {
        (void)fclose(file);
    }
    if (error != 0) {
        (void)fprintf(errors, "%s: %s\n", path, tg_error_text(error));
    } else {
        error =
            ctl_sale_file_parse(standard ? "standard input" : path, text, length, errors, out_file);
    }
    free(text);
    return error;
}
