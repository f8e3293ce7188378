/* SPDX-License-Identifier: Apache-2.0
 * Who may do what on the bus: catalog/messages.def and catalog/identities.def as NATS's
 * configuration. */
#ifndef TG_CTL_RIGHTS_H
#define TG_CTL_RIGHTS_H

#include "lib/pure/error.h"

#include <stdio.h>

/* Writes the accounts of nats.conf with the public NKeys of the folder; the identities' present,
 * previous and next ones. 0, or a negative error after a sentence on stderr. */
TG_MUST_CHECK int ctl_rights_write(FILE *out, const char *keys_folder);

#endif
