/* SPDX-License-Identifier: Apache-2.0
 * A sale's definition and state as people and programs read them. Field names are those of the sale
 * file. */
#ifndef TG_CTL_STATE_H
#define TG_CTL_STATE_H

#include "lib/pure/limit.h"
#include "tidegate/v1/ledger.pb-c.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl_line {
    char name[32];
    char value[72];
};
enum { CTL_LINES_MAX = 16 + 4 * TG_MAX_ITEMS_PER_SALE };

/* The definition as lines "limits.perBuyer" "1". Returns how many. */
size_t ctl_definition_lines(const Tidegate__V1__SaleDefinition *definition,
                            struct ctl_line out_lines[CTL_LINES_MAX]);

const char *ctl_phase_text(Tidegate__V1__SalePhase phase);
const char *ctl_reservation_text(Tidegate__V1__ReservationState state);

enum { CTL_VALUE_BYTES = 32 };
/* "10m", "30s", "250ms" */
void ctl_duration_text(int64_t ms, char out_text[CTL_VALUE_BYTES]);
/* RFC 3339, or "never" for 0 */
void ctl_time_text(int64_t ms, char out_text[CTL_VALUE_BYTES]);
/* "1000/s", or with up to three decimals */
void ctl_pace_text(uint64_t pace_milli, char out_text[CTL_VALUE_BYTES]);

json_t *ctl_definition_json(const Tidegate__V1__SaleDefinition *definition);
json_t *ctl_state_json(const Tidegate__V1__SaleState *state);

/* One line: "demo is open, generation 1, epoch 3, armed" and the pauses, on stdout. */
void ctl_print_state(const Tidegate__V1__SaleState *state);

#endif
