/* SPDX-License-Identifier: Apache-2.0
 * The edge's settings as a struct. */
#ifndef EDGE_SETTINGS_H
#define EDGE_SETTINGS_H

#include "lib/io/config.h"

/* The order of these includes is their meaning. */
/* clang-format off */
struct edge_settings {
#include "lib/io/config_members.h"
#include "services/edge/settings.def"
#include "lib/io/config_end.h"
};
/* clang-format on */

#endif
