/* SPDX-License-Identifier: Apache-2.0
 * What the ledger tells of an incident: counts, timeline, affected reservations. */
#ifndef TG_CTL_INCIDENT_H
#define TG_CTL_INCIDENT_H

#include "tools/tidegatectl/session.h"

/* One page after a key (NULL: the first). CTL_DONE and *out_page
 * (tidegate__v1__incident_reply__free_unpacked), or another exit code after a sentence on stderr.
 */
enum ctl_exit ctl_incident_page(struct ctl_session *session, const char *sale, const char *after,
                                Tidegate__V1__IncidentReply **out_page);

/* What is to be done with an affected reservation, for people. */
const char *ctl_incident_advice(const Tidegate__V1__IncidentRow *row);

#endif
