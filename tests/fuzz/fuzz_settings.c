/* SPDX-License-Identifier: Apache-2.0
 * Settings: with any values in the environment, loading either fills every member within its row's
 * bounds, or names each bad variable in one printable line. Nothing is guessed. */
#include "tests/fuzz/fuzz.h"

#include "lib/io/config.h"
#include "lib/pure/clock.h"
#include "lib/pure/text.h"

#include <stddef.h>

struct settings {
#include "lib/io/config_members.h"

#include "catalog/settings.def"
#include "services/edge/settings.def"
#include "tests/fuzz/fuzz_settings.def"

#include "lib/io/config_end.h"
};

static const struct tg_setting rows[] = {
#define TG_SETTINGS_OF struct settings
#include "lib/io/config_rows.h"

#include "catalog/settings.def"
#include "services/edge/settings.def"
#include "tests/fuzz/fuzz_settings.def"

#include "lib/io/config_end.h"
};

enum { SAID_BYTES = 16384 };

static bool is_text(const struct tg_setting *row)
{
    return row->kind == TG_SETTING_TEXT || row->kind == TG_SETTING_FILE;
}

static void name_of(const struct tg_setting *row, char out_name[128])
{
    (void)snprintf(out_name, 128, "TIDEGATE_FUZZ_%s", row->name);
    for (char *at = out_name; *at != '\0'; at++) {
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    }
}

/* Gives some of the rows a value: NUL-separated texts of the input. Keys exist; the rest may not.
 */
static void set_environment(struct choice *choice)
{
    char name[128], value[1100];
    setenv("TIDEGATE_KEYS", "/", 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t length = 0;
        name_of(&rows[i], name);
        unsetenv(name);
        if (choice->at == choice->length) {
            continue;
        }
        uint8_t byte = choice_byte(choice);
        while (byte != 0 && length < sizeof(value) - 1) {
            value[length++] = (char)byte;
            byte = choice_byte(choice);
        }
        value[length] = '\0';
        if (length > 0) { /* "\x01" stands for an empty one */
            setenv(name, strcmp(value, "\x01") == 0 ? "" : value, 1);
        }
    }
}

static void check_member(const struct tg_setting *row, const struct settings *settings)
{
    const char *member = (const char *)settings + row->offset;
    int64_t number = 0, min = row->min, max = row->max;
    if (is_text(row)) {
        const char *text = NULL;
        memcpy(&text, member, sizeof(text));
        HOLDS(text != NULL && strlen(text) <= 1024);
        HOLDS(tg_utf8_valid((const uint8_t *)text, strlen(text)));
        HOLDS(text[0] != '\0' || (row->default_text != NULL && row->default_text[0] == '\0'));
        return;
    }
    memcpy(&number, member, sizeof(number));
    if (row->kind == TG_SETTING_DURATION) {
        HOLDS(tg_duration_parse(row->min_text, &min) == 0);
        HOLDS(tg_duration_parse(row->max_text, &max) == 0);
    }
    HOLDS(number >= min && number <= max);
}

/* One line per fault, each with its variable first and nothing that a terminal would obey. */
static void check_sentences(const char *said)
{
    for (const char *line = said; *line != '\0';) {
        const char *end = strchr(line, '\n');
        HOLDS(end != NULL && strncmp(line, "TIDEGATE_", 9) == 0);
        for (; line < end; line++) {
            HOLDS((unsigned char)*line >= 0x20 && *line != 0x7f);
        }
        line = end + 1;
    }
}

static void free_texts(struct settings *settings)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (is_text(&rows[i])) {
            char *text = NULL;
            memcpy(&text, (char *)settings + rows[i].offset, sizeof(text));
            free(text);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static char said[SAID_BYTES];
    struct choice choice = {bytes, size, 0};
    struct settings settings = {0};
    set_environment(&choice);
    memset(said, 0, sizeof(said));
    FILE *errors = fmemopen(said, sizeof(said) - 1, "w");
    HOLDS(errors != NULL);
    int error = tg_config_load("fuzz", rows, COUNT_OF(rows), &settings, errors);
    (void)fclose(errors);
    HOLDS((error == 0) == (said[0] == '\0'));
    if (error == 0) {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            check_member(&rows[i], &settings);
        }
    }
    check_sentences(said);
    free_texts(&settings);
    return 0;
}
