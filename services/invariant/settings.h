/* SPDX-License-Identifier: Apache-2.0
 * The checker's settings as a struct. Read once at start, never changed. */
#ifndef INVARIANT_SETTINGS_H
#define INVARIANT_SETTINGS_H

#include "lib/io/config.h"

/* clang-format off: the order of these includes is their meaning */
struct invariant_settings {
#include "lib/io/config_members.h"
#include "services/invariant/settings.def"
#include "lib/io/config_end.h"
};
/* clang-format on */

#endif
