/* SPDX-License-Identifier: Apache-2.0
 * The sweeper's settings as a struct. Read once at start, never changed. */
#ifndef SWEEPER_SETTINGS_H
#define SWEEPER_SETTINGS_H

#include "lib/io/config.h"

struct sweeper_settings {
#include "lib/io/config_members.h"
#include "services/sweeper/settings.def"
#include "lib/io/config_end.h"
};

#endif
