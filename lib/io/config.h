/* SPDX-License-Identifier: Apache-2.0
 * Settings from the environment, as rows: each daemon's settings.def next to catalog/settings.def.
 * Whole values in range or exit 78 (EX_CONFIG) with the name, the value and what was expected.
 *
 * A daemon lists its rows (services/NAME/settings.def; the forms are told in catalog/settings.def):
 *     TG_TEXT(redis_url, "redis://127.0.0.1:6379", "URL of the gate's Redis")
 *     TG_FILE(keys, NULL, "folder of key files")
 *     TG_INTEGER(in_flight, 256, 64, 1024, "commands", "sent to Redis and not yet answered")
 *     TG_DURATION(resend_every, "500ms", "50ms", "1m", "unacknowledged holds are sent again")
 * declares (services/NAME/settings.h):
 *     struct name_settings {
 *     #include "lib/io/config_members.h"     // turns rows into members
 *     #include "services/name/settings.def"
 *     #include "lib/io/config_end.h"
 *     };
 * and defines (main.c):
 *     static const struct tg_setting rows[] = {
 *     #define TG_SETTINGS_OF struct name_settings
 *     #include "lib/io/config_rows.h"        // turns rows into table entries
 *     #include "services/name/settings.def"
 *     #include "lib/io/config_end.h"
 *     };
 * clang-format keeps this order of the three (see .clang-format).
 * Text members are const char *, integers int64_t, durations int64_t NAME_ms.
 * tests/unit/test_io_config.c holds a whole one. */
#ifndef TG_IO_CONFIG_H
#define TG_IO_CONFIG_H

#include "lib/pure/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum tg_setting_kind { TG_SETTING_TEXT, TG_SETTING_FILE, TG_SETTING_INTEGER, TG_SETTING_DURATION };

struct tg_setting {
    const char *name;
    enum tg_setting_kind kind;
    size_t offset;            /* of the member */
    const char *default_text; /* text, files, durations; NULL = required; "" = may be absent (text,
                                 files) */
    int64_t default_number;   /* integers */
    int64_t min, max;         /* integers */
    const char *min_text, *max_text; /* durations */
    const char *unit;
    const char *help;
};

/* The settings every daemon has (catalog/settings.def). */
struct tg_common_settings;

/* Fills `out_settings` from TIDEGATE_<DAEMON>_<NAME>, else TIDEGATE_<NAME>, else the default. Each
 * text may come as the name of a file instead, TIDEGATE_..._<NAME>_FILE: secrets do. A
 * variable that is set but empty counts as set. On a bad value prints one line per problem to
 * `errors` and returns TG_ERR_SETTING. Strings live as long as the process. */
TG_MUST_CHECK int tg_config_load(const char *daemon, const struct tg_setting *rows,
                                 size_t row_count, void *out_settings, FILE *errors);

/* Every row with name, default, range, unit, help; with `settings` not NULL its present value too
 * (passwords masked). */
void tg_config_print(FILE *out, const char *daemon, const struct tg_setting *rows, size_t row_count,
                     const void *settings);

#endif
