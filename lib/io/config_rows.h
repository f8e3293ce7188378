/* SPDX-License-Identifier: Apache-2.0
 * Turns the rows of a settings.def into entries of a `struct tg_setting` table for TG_SETTINGS_OF.
 * No guard. See config.h. */
#define TG_TEXT(name_, default_value, help_)                                                       \
    {.name = #name_,                                                                               \
     .kind = TG_SETTING_TEXT,                                                                      \
     .offset = offsetof(TG_SETTINGS_OF, name_),                                                    \
     .default_text = (default_value),                                                              \
     .unit = "text",                                                                               \
     .help = (help_)},
#define TG_FILE(name_, default_value, help_)                                                       \
    {.name = #name_,                                                                               \
     .kind = TG_SETTING_FILE,                                                                      \
     .offset = offsetof(TG_SETTINGS_OF, name_),                                                    \
     .default_text = (default_value),                                                              \
     .unit = "path",                                                                               \
     .help = (help_)},
#define TG_INTEGER(name_, default_value, min_value, max_value, unit_, help_)                       \
    {.name = #name_,                                                                               \
     .kind = TG_SETTING_INTEGER,                                                                   \
     .offset = offsetof(TG_SETTINGS_OF, name_),                                                    \
     .default_number = (default_value),                                                            \
     .min = (min_value),                                                                           \
     .max = (max_value),                                                                           \
     .unit = (unit_),                                                                              \
     .help = (help_)},
#define TG_DURATION(name_, default_value, min_value, max_value, help_)                             \
    {.name = #name_,                                                                               \
     .kind = TG_SETTING_DURATION,                                                                  \
     .offset = offsetof(TG_SETTINGS_OF, name_##_ms),                                               \
     .default_text = (default_value),                                                              \
     .min_text = (min_value),                                                                      \
     .max_text = (max_value),                                                                      \
     .unit = "duration",                                                                           \
     .help = (help_)},
