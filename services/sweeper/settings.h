/* SPDX-License-Identifier: Apache-2.0
 * The sweeper's settings as a struct. Read once at start, never changed. */
#ifndef SWEEPER_SETTINGS_H
#define SWEEPER_SETTINGS_H

#include "lib/io/config.h"

/* clang-format off: the order of these includes is their meaning */
struct sweeper_settings {
#include "lib/io/config_members.h"
#include "services/sweeper/settings.def"
#include "lib/io/config_end.h"
};
/* clang-format on */

#endif
