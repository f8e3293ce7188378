/* SPDX-License-Identifier: Apache-2.0
 * catalog/limits.def as constants: TG_MAX_<ID>. limit.c asserts the relations between them. */
#ifndef TG_PURE_LIMIT_H
#define TG_PURE_LIMIT_H

enum tg_limit {
#define TG_LIMIT(id, value, unit, why) TG_MAX_##id = (value),
#include "catalog/limits.def"
#undef TG_LIMIT
};

#endif
