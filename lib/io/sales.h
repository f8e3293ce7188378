/* SPDX-License-Identifier: Apache-2.0
 * Every daemon's view of the sales: hears state.{sale}, fetches definitions from ledger.sales when
 * a digest or generation is new, honours control pauses at once and acknowledges commands. Fixed
 * tables; pointers stay valid for the process's life. */
#ifndef TG_IO_SALES_H
#define TG_IO_SALES_H

#include "lib/io/app.h"
#include "lib/io/bus.h"
#include "lib/pure/pass.h"
#include "lib/pure/sale.h"
#include "tidegate/v1/control.pb-c.h"

struct tg_sales;

struct tg_sales_spec {
    const char *keys_folder; /* public control keys */
    /* After any change of a sale (definition, state, own pause). May be NULL. */
    void (*on_change)(void *context, struct tg_sale *sale);
    /* A verified command, after the pause (if it is one) was honoured in the view. Return the
     * effect for the ack, e.g. "honoured", "noted" (static text). May be NULL ("noted"). */
    const char *(*on_command)(void *context, struct tg_sale *sale_or_null,
                              const Tidegate__V1__Command *command);
    /* Set by the ledger only: takes over the incoming message to answer it with its judgement and
     * sends the ack itself. */
    bool (*on_judge)(void *context, struct tg_bus_incoming *take_incoming,
                     const Tidegate__V1__Command *command, const char *key_id,
                     uint64_t received_us);
    void *context;
    bool without_state; /* the ledger: does not listen to itself for definitions */
};

TG_MUST_CHECK int tg_sales_open(struct tg_app *app, const struct tg_sales_spec *spec,
                                struct tg_sales **out_sales);
struct tg_sales *tg_sales_free(struct tg_sales *sales);

/* NULL when unknown (or its definition is not known yet). */
struct tg_sale *tg_sales_find(struct tg_sales *sales, const char *name);
/* Sales that are or were known, in the order they became known: an index keeps its sale. While a
 * re-created sale's new definition is missing its phase is TG_PHASE_UNKNOWN. */
size_t tg_sales_count(const struct tg_sales *sales);
struct tg_sale *tg_sales_at(struct tg_sales *sales, size_t index);
/* ledger.sales answered at least once. */
bool tg_sales_known(const struct tg_sales *sales);
/* What to tell of a sale that is not here: SALE_UNKNOWN, or TRY_AGAIN while not all are known: who
 * has just started cannot deny one. */
enum tg_reason tg_sales_missing(const struct tg_sales *sales);

/* Signature (key may say this kind), expiry, sale name. 0, or TG_ERR_FORGED, TG_ERR_MALFORMED,
 * TG_ERR_RANGE (expired). On success *out_command is to be freed with
 * tidegate__v1__command__free_unpacked(x, NULL). */
TG_MUST_CHECK int tg_command_verify(const struct tg_verify_key *operator_key,
                                    const struct tg_verify_key *invariant_key,
                                    const Tidegate__V1__SignedCommand *signed_command,
                                    const char *sale, struct tg_wall now,
                                    Tidegate__V1__Command **out_command);

/* Signs and packs. key_name "operator" or "invariant". *out is freed with tg_command_free. */
struct tg_signed_command {
    Tidegate__V1__SignedCommand message;
    uint8_t *command;
    uint8_t signature[64];
    char key_id[16];
};
TG_MUST_CHECK int tg_command_sign(const struct tg_sign_key *key, const char *key_name,
                                  const Tidegate__V1__Command *command,
                                  struct tg_signed_command *out_signed);
void tg_command_free(struct tg_signed_command *signed_command);
/* 26 random characters. */
void tg_command_new_id(char out_id[TG_BASE32_ID_LENGTH + 1]);

/* A phase as messages tell it. */
Tidegate__V1__SalePhase tg_phase_told(enum tg_phase phase);

/* SaleDefinition <-> struct tg_sale (definition part). 0 or TG_ERR_RANGE with a sentence naming
 * field and bounds. */
TG_MUST_CHECK int tg_definition_check(const Tidegate__V1__SaleDefinition *definition,
                                      char *out_fault, size_t capacity);
/* Over every field but the generation, which the state tells beside it. */
void tg_definition_digest(const Tidegate__V1__SaleDefinition *definition,
                          uint8_t out_digest[TG_DIGEST_BYTES]);
/* The definition part of `sale`, digest included; only of a definition that was checked. */
void tg_definition_read(const Tidegate__V1__SaleDefinition *definition, struct tg_sale *sale);

#endif
