/* SPDX-License-Identifier: Apache-2.0
 * What the files of lib/io/sales share among themselves; nobody else includes this. */
#ifndef TG_IO_SALES_INNER_H
#define TG_IO_SALES_INNER_H

#include "lib/io/sales.h"
#include "lib/pure/pass.h"
#include "tidegate/v1/ledger.pb-c.h"

struct sales_entry {
    struct tg_sale sale;
    bool defined;              /* its definition of this generation is known */
    bool listed;               /* it was known once: its index stays */
    enum tg_phase announced;   /* acted on once the definition is known */
    bool wanted;               /* a definition we do not have was announced */
    bool stated;               /* a state was ever taken */
    int64_t ledger_now_ms;     /* of the last state taken */
    uint64_t pause_generation; /* highest generation an own pause was meant for */
    uint8_t announced_digest[TG_DIGEST_BYTES];
};

struct tg_sales {
    struct tg_app *app;
    struct tg_sales_spec spec;
    /* Present, previous and next; where one is missing the present one again. */
    struct tg_verify_key operator_keys[3], invariant_keys[3];
    struct sales_entry *entries; /* TG_MAX_SALES; never moved */
    size_t entry_count;
    struct sales_entry *listed[TG_MAX_SALES]; /* in the order they became known */
    size_t listed_count;
    bool known;
    bool fetching;
    char fetch_one[TG_MAX_SALE_NAME_BYTES + 1]; /* "": all */
    char fetch_after[TG_MAX_SALE_NAME_BYTES + 1];
    size_t fetch_pages, fetch_next;
    struct tg_mono fetch_not_before;
    bool full_logged;
    struct tg_mono refusal_logged;
};

/* The entry of a sale, made when missing. NULL when the table is full or the name is none. */
struct sales_entry *sales_entry_take(struct tg_sales *sales, const char *name);
void sales_changed(struct tg_sales *sales, struct sales_entry *entry);

/* sales_state.c. False: malformed, or older than what is known; nothing was changed. */
bool sales_state_take(struct sales_entry *entry, const Tidegate__V1__SaleState *state,
                      struct tg_mono now);
/* False: out of bounds. */
bool sales_definition_take(struct sales_entry *entry,
                           const Tidegate__V1__SaleDefinition *definition);

/* sales_fetch.c: asks ledger.sales for what is missing, one request at a time. */
void sales_fetch(struct tg_sales *sales);

/* sales_command.c. Honours a verified pause in the view; NONE, or why not. */
enum tg_reason sales_pause_take(struct sales_entry *entry, const Tidegate__V1__Command *command);
TG_MUST_CHECK int sales_command_listen(struct tg_sales *sales);

#endif
