/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ledger/core_chain.h"

#include "lib/pure/number.h"

#include <assert.h>

size_t ledger_units_format(const struct tg_unit_ref *units, uint32_t count,
                           char out_text[LEDGER_UNITS_TEXT_BYTES])
{
    assert(count <= TG_MAX_UNITS_PER_HOLD);
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) {
            out_text[length++] = ',';
        }
        length += tg_unsigned_format(units[i].item, out_text + length);
        out_text[length++] = ':';
        length += tg_unsigned_format(units[i].unit, out_text + length);
    }
    out_text[length] = '\0';
    return length;
}

void ledger_chain(uint8_t hash[LEDGER_CHAIN_BYTES], const struct ledger_log_place *place,
                  const struct ledger_log_entry *entry)
{
    struct tg_mac mac;
    char units[LEDGER_UNITS_TEXT_BYTES];
    const size_t units_length = ledger_units_format(entry->units, entry->unit_count, units);
    tg_mac_begin(&mac, NULL, "gate_log");
    tg_mac_text(&mac, place->sale);
    tg_mac_number(&mac, place->epoch);
    tg_mac_number(&mac, place->shard);
    tg_mac_number(&mac, entry->sequence);
    tg_mac_text(&mac, entry->kind);
    tg_mac_text(&mac, entry->id.text);
    tg_mac_field(&mac, units, units_length);
    tg_mac_number(&mac, (uint64_t)entry->stock_after);
    tg_mac_number(&mac, (uint64_t)entry->gate_ms);
    tg_mac_text(&mac, entry->source);
    tg_mac_field(&mac, hash, LEDGER_CHAIN_BYTES);
    tg_mac_end(&mac, hash, LEDGER_CHAIN_BYTES);
}
