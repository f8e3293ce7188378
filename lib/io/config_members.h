/* SPDX-License-Identifier: Apache-2.0
 * Turns the rows of a settings.def into the members of its struct. No guard: included once per
 * struct. See config.h. */
#define TG_TEXT(name, default_value, help) const char *name;
#define TG_FILE(name, default_value, help) const char *name;
#define TG_INTEGER(name, default_value, min_value, max_value, unit_text, help) int64_t name;
#define TG_DURATION(name, default_value, min_value, max_value, help) int64_t name##_ms;
