/* SPDX-License-Identifier: Apache-2.0
 * The reserve daemon's settings as a struct. Read once at start, never changed. */
#ifndef RESERVE_SETTINGS_H
#define RESERVE_SETTINGS_H

#include "lib/io/config.h"

/* The order of these lines is their meaning. */
/* clang-format off */
struct reserve_settings {
#include "lib/io/config_members.h"
#include "services/reserve/settings.def"
#include "lib/io/config_end.h"
};
/* clang-format on */

#endif
