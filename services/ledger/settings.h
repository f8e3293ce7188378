/* SPDX-License-Identifier: Apache-2.0
 * The ledger's settings as a struct. Read once at start, never changed. */
#ifndef LEDGER_SETTINGS_H
#define LEDGER_SETTINGS_H

#include "lib/io/config.h"

struct ledger_settings {
/* clang-format off */
#include "lib/io/config_members.h"
#include "services/ledger/settings.def"
#include "lib/io/config_end.h"
    /* clang-format on */
};

#endif
