/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/yaml_read.h"

#include "lib/pure/clock.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"
#include "tools/tidegatectl/ctl.h"
#include "tools/tidegatectl/sale_file.h"
#include "tools/tidegatectl/state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { SHOWN_BYTES = 64, PATH_BYTES = 160 };

static const char *const scalar_tags[] = {YAML_STR_TAG, YAML_NULL_TAG, YAML_BOOL_TAG, YAML_INT_TAG,
                                          YAML_FLOAT_TAG};

void yaml_fault(struct yaml_reading *reading, const yaml_node_t *node, const char *field,
                const char *format, ...)
{
    if (reading->faults++ >= reading->faults_max) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(reading->errors, "%s:", reading->name);
    if (node != NULL) {
        (void)fprintf(reading->errors, "%zu:", node->start_mark.line + 1);
    }
    (void)fprintf(reading->errors, " %s%s", field, field[0] != '\0' ? ": " : "");
    (void)vfprintf(reading->errors, format, arguments);
    (void)fputc('\n', reading->errors);
    va_end(arguments);
}

/* What stands there, for a person. */
static void show(const yaml_node_t *node, char out_text[SHOWN_BYTES])
{
    switch (node->type) {
    case YAML_SCALAR_NODE:
        ctl_printable((const char *)node->data.scalar.value, node->data.scalar.length, out_text,
                      SHOWN_BYTES);
        if (node->data.scalar.length == 0) {
            (void)snprintf(out_text, SHOWN_BYTES, "nothing");
        }
        return;
    case YAML_SEQUENCE_NODE:
        (void)snprintf(out_text, SHOWN_BYTES, "a list");
        return;
    case YAML_MAPPING_NODE:
        (void)snprintf(out_text, SHOWN_BYTES, "a mapping");
        return;
    case YAML_NO_NODE:
        break;
    }
    (void)snprintf(out_text, SHOWN_BYTES, "nothing");
}

static void expected(struct yaml_reading *reading, const yaml_node_t *node, const char *path,
                     const char *what)
{
    char shown[SHOWN_BYTES];
    show(node, shown);
    yaml_fault(reading, node, path, "expected %s, got %s", what, shown);
}

/* ---- scalars ---- */

/* A scalar without NUL bytes and without a tag of its own. */
static const char *scalar_text(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE ||
        strlen((const char *)node->data.scalar.value) != node->data.scalar.length) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(scalar_tags) / sizeof(scalar_tags[0]); i++) {
        if (strcmp((const char *)node->tag, scalar_tags[i]) == 0) {
            return (const char *)node->data.scalar.value;
        }
    }
    return NULL;
}

static bool is_plain(const yaml_node_t *node)
{
    return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* Unquoted, YAML means a number, a boolean or nothing by it (core schema), so it is no text. */
static bool means_other_than_text(const char *text)
{
    static const char *const words[] = {"null", "Null", "NULL",  "~",     "",     "true",
                                        "True", "TRUE", "false", "False", "FALSE"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    const char *digits = text + strspn(text, "+-");
    if (digits - text > 1 || digits[0] == '\0') {
        return false;
    }
    if (strncmp(digits, "0x", 2) == 0) {
        return strspn(digits + 2, "0123456789abcdefABCDEF") == strlen(digits + 2);
    }
    const char *rest = digits + strspn(digits, "0123456789.");
    if (rest == digits || strcmp(digits, "..") == 0) {
        return false;
    }
    if (*rest == 'e' || *rest == 'E') {
        rest++;
        rest += *rest == '+' || *rest == '-';
        rest += strspn(rest, "0123456789");
    }
    return *rest == '\0';
}

static bool is_currency(const char *text)
{
    return strlen(text) == 3 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

static bool is_printable(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e) {
            return false;
        }
    }
    return length >= 1 && length <= 128;
}

/* Text fields: the value must be text for YAML too. */
static void read_text(struct yaml_reading *reading, const yaml_node_t *node, const char *path,
                      const struct yaml_field *field, char *out_text)
{
    const char *text = scalar_text(node);
    const char *what = "a currency of three capital letters such as EUR";
    bool good = text != NULL && field->kind == YAML_KIND_CURRENCY && is_currency(text);
    if (field->kind == YAML_KIND_NAME) {
        what = "a text of 1 to 64 of A-Z a-z 0-9 _ -";
        good = text != NULL && tg_sale_name_valid(text, strlen(text));
    } else if (field->kind == YAML_KIND_TEXT) {
        what = "a text of 1 to 128 printable characters";
        good = text != NULL && is_printable(text);
    }
    if (!good) {
        expected(reading, node, path, what);
        return;
    }
    if (is_plain(node) && means_other_than_text(text)) {
        yaml_fault(reading, node, path,
                   "expected a text, got %s, which is none for YAML: put it in quotes", text);
        return;
    }
    memcpy(out_text, text, strlen(text) + 1);
}

static void read_integer(struct yaml_reading *reading, const yaml_node_t *node, const char *path,
                         const struct yaml_field *field, int64_t *out_value)
{
    const char *text = scalar_text(node);
    int64_t value = 0;
    if (text == NULL || !is_plain(node) ||
        tg_integer_parse(text, strlen(text), field->min, field->max, &value) != 0) {
        char what[96];
        (void)snprintf(what, sizeof(what),
                       "an integer from %" PRId64 " to %" PRId64 " in plain digits", field->min,
                       field->max);
        expected(reading, node, path, what);
        return;
    }
    *out_value = value;
}

static void read_duration(struct yaml_reading *reading, const yaml_node_t *node, const char *path,
                          const struct yaml_field *field, int64_t *out_value)
{
    const char *text = scalar_text(node);
    int64_t ms = 0;
    if (text == NULL || tg_duration_parse(text, &ms) != 0 || ms < field->min || ms > field->max) {
        char what[256], min[CTL_VALUE_BYTES], max[CTL_VALUE_BYTES];
        ctl_duration_text(field->min, min);
        ctl_duration_text(field->max, max);
        (void)snprintf(what, sizeof(what),
                       "a duration with its unit (250ms, 5s, 10m, 2h) from %s to %s", min, max);
        expected(reading, node, path, what);
        return;
    }
    *out_value = ms;
}

static void read_pace(struct yaml_reading *reading, const yaml_node_t *node, const char *path,
                      const struct yaml_field *field, int64_t *out_value)
{
    const char *text = scalar_text(node);
    uint64_t pace_milli = 0;
    if (text == NULL || ctl_pace_parse(text, &pace_milli) != 0 ||
        pace_milli < (uint64_t)field->min * 1000 || pace_milli > (uint64_t)field->max * 1000) {
        char what[96];
        (void)snprintf(what, sizeof(what), "people per second from %" PRId64 "/s to %" PRId64 "/s",
                       field->min, field->max);
        expected(reading, node, path, what);
        return;
    }
    *out_value = (int64_t)pace_milli;
}

static void read_instant(struct yaml_reading *reading, const yaml_node_t *node, const char *path,
                         int64_t *out_value)
{
    const char *text = scalar_text(node);
    struct tg_wall wall;
    if (text == NULL || tg_wall_parse(text, &wall) != 0) {
        expected(reading, node, path, "a time with its zone such as 2026-12-01T10:00:00Z");
        return;
    }
    *out_value = wall.ms;
}

static void read_choice(struct yaml_reading *reading, const yaml_node_t *node, const char *path,
                        const struct yaml_field *field, int64_t *out_value)
{
    const char *text = scalar_text(node);
    char what[96] = "";
    for (size_t i = 0; i < 4 && field->choices[i] != NULL; i++) {
        if (text != NULL && strcmp(text, field->choices[i]) == 0) {
            *out_value = (int64_t)i;
            return;
        }
        size_t length = strlen(what);
        (void)snprintf(what + length, sizeof(what) - length, "%s%s", i > 0 ? " or " : "",
                       field->choices[i]);
    }
    expected(reading, node, path, what);
}

static void read_value(struct yaml_reading *reading, yaml_node_t *node, const char *path,
                       const struct yaml_field *field, void *out_member)
{
    switch (field->kind) {
    case YAML_KIND_NAME:
    case YAML_KIND_TEXT:
    case YAML_KIND_CURRENCY:
        read_text(reading, node, path, field, out_member);
        return;
    case YAML_KIND_INTEGER:
        read_integer(reading, node, path, field, out_member);
        return;
    case YAML_KIND_DURATION:
        read_duration(reading, node, path, field, out_member);
        return;
    case YAML_KIND_INSTANT:
        read_instant(reading, node, path, out_member);
        return;
    case YAML_KIND_PACE:
        read_pace(reading, node, path, field, out_member);
        return;
    case YAML_KIND_CHOICE:
        read_choice(reading, node, path, field, out_member);
        return;
    case YAML_KIND_NODE:
        *(yaml_node_t **)out_member = node;
        return;
    }
}

/* ---- mappings ---- */

static void unknown_key(struct yaml_reading *reading, const yaml_node_t *key, const char *path,
                        const struct yaml_field *fields, size_t count)
{
    char known[256] = "";
    char shown[SHOWN_BYTES];
    char where[PATH_BYTES];
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(known);
        (void)snprintf(known + length, sizeof(known) - length, "%s%s", i > 0 ? ", " : "",
                       fields[i].name);
    }
    show(key, shown);
    (void)snprintf(where, sizeof(where), "%s%s", path, shown);
    yaml_fault(reading, key, where, "unknown key; expected one of: %s", known);
}

static size_t find_field(const yaml_node_t *key, const struct yaml_field *fields, size_t count)
{
    const char *name = scalar_text(key);
    size_t index = 0;
    while (index < count && (name == NULL || strcmp(name, fields[index].name) != 0)) {
        index++;
    }
    return index;
}

void yaml_read_fields(struct yaml_reading *reading, yaml_node_t *node, const char *path,
                      const struct yaml_field *fields, size_t count, void *out_values)
{
    assert(count <= YAML_FIELDS_MAX);
    bool seen[YAML_FIELDS_MAX] = {false};
    char where[PATH_BYTES];
    size_t path_length = strlen(path);
    (void)snprintf(where, sizeof(where), "%.*s", (int)(path_length - (path_length > 0)),
                   path); /* without the last dot */
    if (node->type != YAML_MAPPING_NODE) {
        expected(reading, node, where, "a mapping");
        return;
    }
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        yaml_node_t *key = yaml_document_get_node(reading->document, pair->key);
        yaml_node_t *value = yaml_document_get_node(reading->document, pair->value);
        size_t index = find_field(key, fields, count);
        if (index == count) {
            unknown_key(reading, key, path, fields, count);
            continue;
        }
        (void)snprintf(where, sizeof(where), "%s%s", path, fields[index].name);
        if (seen[index]) {
            yaml_fault(reading, key, where, "given twice");
            continue;
        }
        seen[index] = true;
        read_value(reading, value, where, &fields[index],
                   (char *)out_values + fields[index].offset);
    }
    for (size_t i = 0; i < count; i++) {
        if (fields[i].required && !seen[i]) {
            (void)snprintf(where, sizeof(where), "%s%s", path, fields[i].name);
            yaml_fault(reading, node, where, "missing");
        }
    }
}
