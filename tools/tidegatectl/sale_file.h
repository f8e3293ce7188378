/* SPDX-License-Identifier: Apache-2.0
 * The sale file: YAML -> a checked SaleDefinition. docs/sale.schema.json says the same for editors.
 * Every fault is one line "FILE:LINE: FIELD: expected ..., got ..."; nothing is guessed, nothing
 * unknown is skipped. */
#ifndef TG_CTL_SALE_FILE_H
#define TG_CTL_SALE_FILE_H

#include "lib/pure/error.h"
#include "lib/pure/limit.h"
#include "tidegate/v1/ledger.pb-c.h"

#include <stdio.h>

enum { CTL_SALE_FILE_BYTES = 65536, CTL_SALE_FILE_FAULTS_MAX = 20 };

/* The definition points into the struct: not to be copied. */
struct ctl_sale_file {
    Tidegate__V1__SaleDefinition definition;
    Tidegate__V1__ItemDefinition items[TG_MAX_ITEMS_PER_SALE];
    Tidegate__V1__ItemDefinition *item_pointers[TG_MAX_ITEMS_PER_SALE];
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    char skus[TG_MAX_ITEMS_PER_SALE][TG_MAX_SKU_BYTES + 1];
    char currencies[TG_MAX_ITEMS_PER_SALE][4];
    char order[16];
    uint8_t commitment[32];
    char beacon[TG_MAX_BEACON_NAME_BYTES + 1];
};

/* text[0..length) under the name it is spoken of. 0, or TG_ERR_MALFORMED after at most
 * CTL_SALE_FILE_FAULTS_MAX faults on `errors`. */
TG_MUST_CHECK int ctl_sale_file_parse(const char *name, const char *text, size_t length,
                                      FILE *errors, struct ctl_sale_file *out_file);

/* The same for a path; "-" is standard input. Also -errno when it cannot be read. */
TG_MUST_CHECK int ctl_sale_file_read(const char *path, FILE *errors,
                                     struct ctl_sale_file *out_file);

/* "1000/s" -> people per 1000 seconds. 0, TG_ERR_MALFORMED or TG_ERR_RANGE. */
TG_MUST_CHECK int ctl_pace_parse(const char *text, uint64_t *out_pace_milli);

#endif
