/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/page.h"

#include "services/edge/words.h"
#include "services/edge/writer.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge_page_externs.h"

enum {
    FILE_BYTES_MAX = 262144,
    FILES_MAX = 64,
    NAME_BYTES = 65,
    RENDERED_BYTES_MAX = 65536 /* the page without script */
};

static const struct {
    const char *name;
    const char *bytes;
    const size_t *length;
} embedded[] = {
#define PAGE_FILE(name, symbol) {name, symbol, &symbol##_length},
#include "edge_page_files.h"
#undef PAGE_FILE
};

/* Files of the operator's folder. */
static struct {
    char name[NAME_BYTES];
    char *bytes;
    size_t length;
} own[FILES_MAX];
static size_t own_count;

/* What may be served: a plain name with an ending that has a content type. */
static bool is_page_name(const char *name)
{
    static const char *const endings[] = {".html", ".css", ".js", ".json", ".svg"};
    size_t length = strlen(name);
    const char *ending = strrchr(name, '.');
    if (ending == NULL || name[0] == '.' || length >= NAME_BYTES ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
            length) {
        return false;
    }
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (strcmp(ending, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int read_file(FILE *stream, char **out_bytes, size_t *out_length)
{
    char *bytes = malloc(FILE_BYTES_MAX + 1);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    size_t got = fread(bytes, 1, FILE_BYTES_MAX + 1, stream);
    if (ferror(stream) || got > FILE_BYTES_MAX) {
        free(bytes);
        return ferror(stream) ? -EIO : TG_ERR_RANGE;
    }
    bytes[got] = '\0';
    *out_bytes = bytes;
    *out_length = got;
    return 0;
}

static int load_file(const char *folder, const char *name)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (length < 0 || length >= (int)sizeof(path) || own_count == FILES_MAX) {
        return TG_ERR_FULL;
    }
    FILE *stream = fopen(path, "rbe");
    if (stream == NULL) {
        return -errno;
    }
    int error = read_file(stream, &own[own_count].bytes, &own[own_count].length);
    fclose(stream);
    if (error == 0) {
        memcpy(own[own_count].name, name, strlen(name) + 1);
        own_count++;
    }
    return error;
}

/* Every servable file of an open folder. */
static int load_all(const char *folder, DIR *listing)
{
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        int error = is_page_name(entry->d_name) ? load_file(folder, entry->d_name) : 0;
        if (error != 0) {
            fprintf(stderr, "TIDEGATE_EDGE_PAGE: %s: %s; expected at most %d files of %d bytes\n",
                    entry->d_name, tg_error_text(error), FILES_MAX, FILE_BYTES_MAX);
            return error;
        }
    }
    return 0;
}

int edge_page_load(const char *folder)
{
    if (folder[0] == '\0') {
        return 0;
    }
    DIR *listing = opendir(folder);
    if (listing == NULL) {
        fprintf(stderr,
                "TIDEGATE_EDGE_PAGE=\"%s\" is refused; expected a folder that can be read\n",
                folder);
        return TG_ERR_SETTING;
    }
    int error = load_all(folder, listing);
    closedir(listing);
    return error;
}

void edge_page_free(void)
{
    while (own_count > 0) {
        own_count--;
        free(own[own_count].bytes);
        own[own_count].bytes = NULL;
    }
}

const char *edge_page_find(const char *name, size_t *out_length)
{
    for (size_t i = 0; i < own_count; i++) {
        if (strcmp(own[i].name, name) == 0) {
            *out_length = own[i].length;
            return own[i].bytes;
        }
    }
    for (size_t i = 0; i < sizeof(embedded) / sizeof(embedded[0]); i++) {
        if (strcmp(embedded[i].name, name) == 0) {
            *out_length = *embedded[i].length;
            return embedded[i].bytes;
        }
    }
    return NULL;
}

const char *edge_page_name(size_t at)
{
    size_t embedded_count = sizeof(embedded) / sizeof(embedded[0]);
    if (at < own_count) {
        return own[at].name;
    }
    return at - own_count < embedded_count ? embedded[at - own_count].name : NULL;
}

/* What stands for the text between the braces. */
static const char *value_of(const struct edge_page_values *values, const char *name, size_t length)
{
    char key[NAME_BYTES];
    if (length > 1 && length < NAME_BYTES && name[0] == '=') {
        memcpy(key, name + 1, length - 1);
        key[length - 1] = '\0';
        return edge_words_say(values->words, key);
    }
    static const char current[] = "current.";
    if (length > sizeof(current) - 1 && memcmp(name, current, sizeof(current) - 1) == 0) {
        const char *language = edge_words_language(values->words);
        name += sizeof(current) - 1;
        length -= sizeof(current) - 1;
        return strlen(language) == length && memcmp(language, name, length) == 0 ? "true" : "false";
    }
    for (size_t i = 0; i < values->count; i++) {
        const struct edge_page_value *value = &values->values[i];
        if (strlen(value->name) == length && memcmp(value->name, name, length) == 0) {
            return value->value;
        }
    }
    return "";
}

static void render(struct edge_writer *writer, const char *template,
                   const struct edge_page_values *values)
{
    const char *open = strstr(template, "{{"), *close = NULL;
    while (open != NULL && (close = strstr(open + 2, "}}")) != NULL) {
        edge_write_bytes(writer, template, (size_t)(open - template));
        edge_write_html(writer, value_of(values, open + 2, (size_t)(close - open - 2)));
        template = close + 2;
        open = strstr(template, "{{");
    }
    edge_write(writer, template);
}

int edge_page_render(const char *template, const struct edge_page_values *values, char **out_text,
                     size_t *out_length)
{
    char *text = malloc(RENDERED_BYTES_MAX);
    if (text == NULL) {
        return -ENOMEM;
    }
    struct edge_writer writer;
    edge_write_begin(&writer, text, RENDERED_BYTES_MAX);
    render(&writer, template, values);
    if (!edge_write_end(&writer)) {
        free(text);
        return -ENOMEM;
    }
    *out_text = text;
    *out_length = writer.length;
    return 0;
}
