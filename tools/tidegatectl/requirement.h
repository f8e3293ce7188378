/* SPDX-License-Identifier: Apache-2.0
 * catalog/requirements.def, and whether what was told meets it. Pure. */
#ifndef TG_CTL_REQUIREMENT_H
#define TG_CTL_REQUIREMENT_H

#include <stdbool.h>
#include <stddef.h>

enum ctl_rule { CTL_IS, CTL_IS_NOT, CTL_AT_LEAST, CTL_WITHIN };
enum ctl_weight { CTL_ADVICE, CTL_MUST };

struct ctl_requirement {
    const char *source, *name;
    enum ctl_rule rule;
    const char *value;
    enum ctl_weight weight;
    const char *guarantees, *why, *remedy;
};

extern const struct ctl_requirement ctl_requirements[];
extern const size_t ctl_requirement_count;

/* The value of a line "name value" in `facts`; false: it is not there, or longer than fits. */
bool ctl_fact(const char *facts, const char *name, char *out_value, size_t capacity);

/* Whether this value is as required; one that is not known (NULL) never is. AT_LEAST reads the
 * integer a version begins with. */
bool ctl_requirement_met(const struct ctl_requirement *requirement, const char *value);

/* "noeviction", "not off", "at least 7", "within 2000" */
void ctl_requirement_text(const struct ctl_requirement *requirement, char *out_text,
                          size_t capacity);

#endif
