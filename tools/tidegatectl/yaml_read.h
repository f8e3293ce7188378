/* SPDX-License-Identifier: Apache-2.0
 * Reading a YAML document by tables of fields: each key known and given once, each value of the
 * type the table says. Faults are printed with file, line and field, and counted. */
#ifndef TG_CTL_YAML_READ_H
#define TG_CTL_YAML_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <yaml.h>

struct yaml_reading {
    yaml_document_t *document;
    const char *name; /* of the file */
    FILE *errors;
    unsigned faults;
    unsigned faults_max; /* printed; further ones are only counted */
};

enum yaml_kind {
    YAML_KIND_NAME,     /* char[64 + 1]: [A-Za-z0-9_-]{1,64} */
    YAML_KIND_TEXT,     /* char[128 + 1]: printable ASCII */
    YAML_KIND_CURRENCY, /* char[4]: [A-Z]{3} */
    YAML_KIND_INTEGER,  /* int64_t */
    YAML_KIND_DURATION, /* int64_t milliseconds */
    YAML_KIND_INSTANT,  /* int64_t Unix milliseconds */
    YAML_KIND_PACE,     /* int64_t people per 1000 seconds; bounds in people per second */
    YAML_KIND_CHOICE,   /* int64_t index of the choice */
    YAML_KIND_NODE      /* yaml_node_t *: looked at by the caller */
};

struct yaml_field {
    const char *name;
    enum yaml_kind kind;
    bool required;
    int64_t min, max;
    const char *choices[4];
    size_t offset; /* of the member in the struct that is filled; absent fields leave it as it is */
};

enum { YAML_FIELDS_MAX = 16 };

/* Prints "FILE:LINE: FIELD: text" and counts it. node NULL: the document as a whole. */
void yaml_fault(struct yaml_reading *reading, const yaml_node_t *node, const char *field,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Fills `out_values` from a mapping. `path` is where it stands: "" or "limits.". */
void yaml_read_fields(struct yaml_reading *reading, yaml_node_t *node, const char *path,
                      const struct yaml_field *fields, size_t count, void *out_values);

#endif
