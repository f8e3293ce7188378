/* SPDX-License-Identifier: Apache-2.0
 * What reserve and the reservation routes share: bodies, ids and units in answers. */
#ifndef EDGE_PURCHASE_H
#define EDGE_PURCHASE_H

#include "services/edge/answer.h"
#include "services/edge/wire.h"

enum { EDGE_UNITS_BYTES = 8192 };

/* NONE, or UNSUPPORTED_MEDIA when there is a body that does not say it is JSON. */
enum tg_reason edge_check_media(const struct edge_request *request);

/* ,"units":[{"sku":"..","unit":4711}]. The sku is null when the sale is not known to this process.
 */
void edge_write_units(const struct tg_sale *sale_or_null, const struct edge_units *units,
                      struct edge_writer *body);

#endif
