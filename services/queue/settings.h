/* SPDX-License-Identifier: Apache-2.0
 * The queue's settings as a struct. */
#ifndef QUEUE_SETTINGS_H
#define QUEUE_SETTINGS_H

#include "lib/io/config.h"

struct queue_settings {
#include "lib/io/config_members.h"
#include "services/queue/settings.def"
#include "lib/io/config_end.h"
};

#endif
