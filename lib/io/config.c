/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/config.h"

#include "lib/pure/clock.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VARIABLE_BYTES = 128, VALUE_BYTES = 1024, SHOWN_BYTES = 80 };

/* One value on its way in: where it came from, for the sentence when it is refused. */
struct input {
    char variable[VARIABLE_BYTES];
    const char *value;          /* NULL: not set anywhere */
    char text[VALUE_BYTES + 2]; /* the value, where it came from a file */
};

/* Environment names: upper case, '-' as '_'. */
static void shout(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '-') {
            *at = '_';
        } else if (*at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        }
    }
}

static void variable_name(const char *daemon, const char *name, char out_variable[VARIABLE_BYTES])
{
    const char *prefix = daemon != NULL ? daemon : "";
    int length = snprintf(out_variable, VARIABLE_BYTES, "TIDEGATE_%s%s%s", prefix,
                          daemon != NULL ? "_" : "", name);
    assert(length > 0 && length < VARIABLE_BYTES); /* both names are literals of ours */
    shout(out_variable);
}

/* VARIABLE or VARIABLE_FILE. */
static void look_in(const char *daemon, const char *name, struct input *input,
                    const char **out_file)
{
    char file[VARIABLE_BYTES + sizeof("_FILE")];
    variable_name(daemon, name, input->variable);
    (void)snprintf(file, sizeof(file), "%s_FILE", input->variable);
    input->value = getenv(input->variable);
    *out_file = getenv(file);
}

static void look_up(const char *daemon, const char *name, struct input *out_input,
                    const char **out_file)
{
    look_in(daemon, name, out_input, out_file);
    if (out_input->value == NULL && *out_file == NULL) {
        struct input shared;
        look_in(NULL, name, &shared, out_file);
        if (shared.value != NULL || *out_file != NULL) {
            *out_input = shared;
        }
    }
}

/* Refuses: name, the value (cut and made printable) and what was expected. */
static int refuse(FILE *errors, const struct input *input, const char *expected)
{
    if (input->value == NULL) {
        fprintf(errors, "%s is not set; expected %s\n", input->variable, expected);
        return TG_ERR_SETTING;
    }
    if (input->value == input->text) { /* a secret */
        fprintf(errors, "%s_FILE: what is in the file is refused; expected %s\n", input->variable,
                expected);
        return TG_ERR_SETTING;
    }
    fprintf(errors, "%s=\"", input->variable);
    for (size_t i = 0; input->value[i] != '\0' && i < SHOWN_BYTES; i++) {
        unsigned char byte = (unsigned char)input->value[i];
        fputc(byte < 0x20 || byte == 0x7f ? '?' : byte, errors);
    }
    fprintf(errors, "\" is refused; expected %s\n", expected);
    return TG_ERR_SETTING;
}

/* The value of VARIABLE_FILE: a secret in a file of one line, which only its owner should read. */
static int read_file(struct input *input, const char *path, FILE *errors)
{
    struct stat status;
    FILE *file = input->value == NULL ? fopen(path, "re") : NULL;
    size_t length = file != NULL ? fread(input->text, 1, sizeof(input->text), file) : 0;
    bool exposed =
        file != NULL && fstat(fileno(file), &status) == 0 && (status.st_mode & S_IROTH) != 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    if (length == 0 || length > VALUE_BYTES || memchr(input->text, '\0', length) != NULL) {
        fprintf(errors,
                "%s_FILE=\"%.*s\" is refused; expected a readable file of one line, and no %s "
                "beside it\n",
                input->variable, SHOWN_BYTES, path, input->variable);
        return TG_ERR_SETTING;
    }
    if (exposed) {
        fprintf(errors, "%s_FILE: warning: everybody may read %s; make it mode 0600\n",
                input->variable, path);
    }
    input->text[length - (input->text[length - 1] == '\n' ? 1 : 0)] = '\0';
    input->value = input->text;
    return 0;
}

static int keep_text(const char *value, void *out_member)
{
    char *copy = strdup(value);
    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(out_member, &copy, sizeof(copy));
    return 0;
}

static int load_text(const struct tg_setting *row, const struct input *input, void *out_member,
                     FILE *errors)
{
    const char *value = input->value != NULL ? input->value : row->default_text;
    bool optional = row->default_text != NULL && row->default_text[0] == '\0';
    if (value == NULL || (value[0] == '\0' && !optional)) {
        return refuse(errors, input,
                      row->kind == TG_SETTING_FILE ? "a path" : "a text that is not empty");
    }
    size_t length = strlen(value);
    if (length > VALUE_BYTES || !tg_utf8_valid((const uint8_t *)value, length)) {
        return refuse(errors, input, "at most 1024 bytes of UTF-8");
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f) {
            return refuse(errors, input, "no control characters");
        }
    }
    if (row->kind == TG_SETTING_FILE && value[0] != '\0' && access(value, R_OK) != 0) {
        struct input shown = *input;
        shown.value = value;
        char expected[128];
        snprintf(expected, sizeof(expected), "a readable file or folder (%s)", strerror(errno));
        return refuse(errors, &shown, expected);
    }
    return keep_text(value, out_member);
}

static int load_integer(const struct tg_setting *row, const struct input *input, void *out_member,
                        FILE *errors)
{
    int64_t number = row->default_number;
    if (input->value != NULL &&
        tg_integer_parse(input->value, strlen(input->value), row->min, row->max, &number) != 0) {
        char expected[160];
        snprintf(expected, sizeof(expected), "a whole number from %" PRId64 " to %" PRId64 " (%s)",
                 row->min, row->max, row->unit);
        return refuse(errors, input, expected);
    }
    memcpy(out_member, &number, sizeof(number));
    return 0;
}

static int load_duration(const struct tg_setting *row, const struct input *input, void *out_member,
                         FILE *errors)
{
    int64_t min = 0;
    int64_t max = 0;
    int bounds = tg_duration_parse(row->min_text, &min) | tg_duration_parse(row->max_text, &max);
    assert(bounds == 0); /* the row is ours */
    (void)bounds;
    const char *value = input->value != NULL ? input->value : row->default_text;
    int64_t ms = 0;
    if (value == NULL || tg_duration_parse(value, &ms) != 0 || ms < min || ms > max) {
        char expected[160];
        snprintf(expected, sizeof(expected), "a duration from %s to %s, as 250ms, 5s, 10m or 2h",
                 row->min_text, row->max_text);
        return refuse(errors, input, expected);
    }
    memcpy(out_member, &ms, sizeof(ms));
    return 0;
}

static int load_row(const struct tg_setting *row, const struct input *input, void *out_member,
                    FILE *errors)
{
    switch (row->kind) {
    case TG_SETTING_TEXT:
    case TG_SETTING_FILE:
        return load_text(row, input, out_member, errors);
    case TG_SETTING_INTEGER:
        return load_integer(row, input, out_member, errors);
    case TG_SETTING_DURATION:
        return load_duration(row, input, out_member, errors);
    }
    return TG_ERR_SETTING;
}

int tg_config_load(const char *daemon, const struct tg_setting *rows, size_t row_count,
                   void *out_settings, FILE *errors)
{
    int first_error = 0;
    for (size_t i = 0; i < row_count; i++) {
        struct input input;
        const char *file = NULL;
        look_up(daemon, rows[i].name, &input, &file);
        int error =
            file != NULL && rows[i].kind == TG_SETTING_TEXT ? read_file(&input, file, errors) : 0;
        if (error == 0) {
            error = load_row(&rows[i], &input, (char *)out_settings + rows[i].offset, errors);
        }
        if (error != 0 && first_error == 0) {
            first_error = error;
        }
    }
    return first_error;
}

/* A URL or connection string without what follows the user's colon, or `password=`. */
static void print_masked(FILE *out, const char *text)
{
    const char *scheme = strstr(text, "://");
    const char *start = scheme != NULL ? scheme + 3 : text;
    const char *at = scheme != NULL ? strrchr(start, '@') : NULL;
    const char *colon = at != NULL ? memchr(start, ':', (size_t)(at - start)) : NULL;
    const char *password = strstr(text, "password=");
    if (colon != NULL) {
        fprintf(out, "%.*s:***%s", (int)(colon - text), text, at);
    } else if (password != NULL) {
        fprintf(out, "%.*spassword=***", (int)(password - text), text);
    } else {
        fputs(text, out);
    }
}

static void print_default(FILE *out, const struct tg_setting *row)
{
    if (row->kind == TG_SETTING_INTEGER) {
        fprintf(out, "default %" PRId64 ", %" PRId64 "..%" PRId64 " %s", row->default_number,
                row->min, row->max, row->unit);
    } else if (row->default_text == NULL) {
        fprintf(out, "required %s", row->unit);
    } else if (row->kind == TG_SETTING_DURATION) {
        fprintf(out, "default %s, %s..%s", row->default_text, row->min_text, row->max_text);
    } else {
        fprintf(out, "default \"%s\" (%s)", row->default_text, row->unit);
    }
}

static void print_value(FILE *out, const struct tg_setting *row, const void *member)
{
    if (row->kind == TG_SETTING_INTEGER || row->kind == TG_SETTING_DURATION) {
        int64_t number;
        memcpy(&number, member, sizeof(number));
        fprintf(out, "%" PRId64 "%s", number, row->kind == TG_SETTING_DURATION ? "ms" : "");
        return;
    }
    const char *text;
    memcpy(&text, member, sizeof(text));
    fputc('"', out);
    print_masked(out, text);
    fputc('"', out);
}

void tg_config_print(FILE *out, const char *daemon, const struct tg_setting *rows, size_t row_count,
                     const void *settings)
{
    for (size_t i = 0; i < row_count; i++) {
        char variable[VARIABLE_BYTES];
        variable_name(daemon, rows[i].name, variable);
        if (settings != NULL) {
            fprintf(out, "%s=", variable);
            print_value(out, &rows[i], (const char *)settings + rows[i].offset);
            fputs("    # ", out);
        } else {
            fprintf(out, "  %-40s ", variable);
        }
        print_default(out, &rows[i]);
        fprintf(out, "; %s\n", rows[i].help);
    }
}
