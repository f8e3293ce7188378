/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/strain.h"

void rehearse_strain_add(struct rehearse_strain *strain, uint32_t turn_ms, uint32_t waited_ms)
{
    if (turn_ms > strain->longest_ms) {
        strain->longest_ms = turn_ms;
    }
    strain->late_ms += turn_ms > REHEARSE_LATE_MS ? turn_ms : 0;
    strain->queued_ms += waited_ms > REHEARSE_WAITED_MS ? turn_ms : 0;
}

bool rehearse_strained(const struct rehearse_strain *strain, bool faults)
{
    return strain->late_ms > REHEARSE_STRAINED_MS ||
           (!faults && strain->queued_ms > REHEARSE_STRAINED_MS);
}
