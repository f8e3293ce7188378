/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/requirement.h"

#include "lib/pure/number.h"

#include <stdio.h>
#include <string.h>

const struct ctl_requirement ctl_requirements[] = {
#define TG_REQUIREMENT(source_, name_, rule_, value_, weight_, guarantees_, why_, remedy_)         \
    {.source = #source_,                                                                           \
     .name = (name_),                                                                              \
     .rule = CTL_##rule_,                                                                          \
     .value = (value_),                                                                            \
     .weight = CTL_##weight_,                                                                      \
     .guarantees = (guarantees_),                                                                  \
     .why = (why_),                                                                                \
     .remedy = (remedy_)},
#include "catalog/requirements.def"
#undef TG_REQUIREMENT
};
const size_t ctl_requirement_count = sizeof(ctl_requirements) / sizeof(ctl_requirements[0]);

bool ctl_fact(const char *facts, const char *name, char *out_value, size_t capacity)
{
    size_t length = strlen(name);
    for (const char *line = facts; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            const char *value = line + length + 1;
            size_t count = strcspn(value, "\n");
            if (count >= capacity) {
                return false;
            }
            memcpy(out_value, value, count);
            out_value[count] = '\0';
            return true;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return false;
}

static bool read_integer(const char *text, size_t length, int64_t *out_value)
{
    return tg_integer_parse(text, length, INT64_MIN, INT64_MAX, out_value) == 0;
}

bool ctl_requirement_met(const struct ctl_requirement *requirement, const char *value)
{
    int64_t told = 0, wanted = 0;
    if (value == NULL) {
        return false;
    }
    switch (requirement->rule) {
    case CTL_IS:
        return strcmp(value, requirement->value) == 0;
    case CTL_IS_NOT:
        return strcmp(value, requirement->value) != 0;
    case CTL_AT_LEAST:
        return read_integer(value, strcspn(value, "."), &told) &&
               read_integer(requirement->value, strlen(requirement->value), &wanted) &&
               told >= wanted;
    case CTL_WITHIN:
        return read_integer(value, strlen(value), &told) &&
               read_integer(requirement->value, strlen(requirement->value), &wanted) &&
               told >= -wanted && told <= wanted;
    }
    return false;
}

void ctl_requirement_text(const struct ctl_requirement *requirement, char *out_text,
                          size_t capacity)
{
    static const char *const before[] = {[CTL_IS] = "",
                                         [CTL_IS_NOT] = "not ",
                                         [CTL_AT_LEAST] = "at least ",
                                         [CTL_WITHIN] = "within "};
    (void)snprintf(out_text, capacity, "%s%s", before[requirement->rule], requirement->value);
}
