/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/page.h"

#include "services/edge/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge_page_externs.h"

enum { FILE_BYTES_MAX = 262144, VALUE_BYTES_MAX = 1024 };

struct page_file {
    const char *name;
    const char *embedded;
    const size_t *embedded_length;
    char *own; /* of the folder */
    size_t own_length;
};

static struct page_file files[] = {
#define PAGE_FILE(name, symbol) {name, symbol, &symbol##_length, NULL, 0},
#include "edge_page_files.h"
#undef PAGE_FILE
};

static int load_file(const char *folder, struct page_file *file)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, file->name);
    if (length < 0 || length >= (int)sizeof(path)) {
        return TG_ERR_RANGE;
    }
    FILE *stream = fopen(path, "rbe");
    if (stream == NULL) {
        return errno == ENOENT ? 0 : -errno;
    }
    char *bytes = malloc(FILE_BYTES_MAX + 1);
    size_t got = bytes != NULL ? fread(bytes, 1, FILE_BYTES_MAX + 1, stream) : 0;
    int error = bytes == NULL          ? -ENOMEM
                : ferror(stream)       ? -EIO
                : got > FILE_BYTES_MAX ? TG_ERR_RANGE
                                       : 0;
    fclose(stream);
    if (error != 0) {
        free(bytes);
        return error;
    }
    bytes[got] = '\0';
    file->own = bytes;
    file->own_length = got;
    return 0;
}

int edge_page_load(const char *folder)
{
    for (size_t i = 0; folder[0] != '\0' && i < sizeof(files) / sizeof(files[0]); i++) {
        int error = load_file(folder, &files[i]);
        if (error != 0) {
            fprintf(stderr, "TIDEGATE_EDGE_PAGE=\"%s\": %s: %s\n", folder, files[i].name,
                    tg_error_text(error));
            return error;
        }
    }
    return 0;
}

void edge_page_free(void)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        free(files[i].own);
        files[i].own = NULL;
    }
}

const char *edge_page_find(const char *name, size_t *out_length)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strcmp(files[i].name, name) == 0) {
            *out_length = files[i].own != NULL ? files[i].own_length : *files[i].embedded_length;
            return files[i].own != NULL ? files[i].own : files[i].embedded;
        }
    }
    return NULL;
}

static const char *value_of(const struct edge_page_value *values, size_t count, const char *name,
                            size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(values[i].name) == length && memcmp(values[i].name, name, length) == 0) {
            return values[i].value;
        }
    }
    return "";
}

static size_t count_places(const char *template)
{
    size_t places = 0;
    for (const char *at = strstr(template, "{{"); at != NULL; at = strstr(at + 2, "{{")) {
        places++;
    }
    return places;
}

int edge_page_render(const char *template, const struct edge_page_value *values, size_t count,
                     char **out_text, size_t *out_length)
{
    size_t capacity = strlen(template) + count_places(template) * VALUE_BYTES_MAX + 1;
    char *text = malloc(capacity);
    if (text == NULL) {
        return -ENOMEM;
    }
    struct edge_writer writer;
    edge_write_begin(&writer, text, capacity);
    const char *open = strstr(template, "{{"), *close = NULL;
    while (open != NULL && (close = strstr(open + 2, "}}")) != NULL) {
        edge_write_bytes(&writer, template, (size_t)(open - template));
        edge_write_html(&writer, value_of(values, count, open + 2, (size_t)(close - open - 2)));
        template = close + 2;
        open = strstr(template, "{{");
    }
    edge_write(&writer, template);
    if (!edge_write_end(&writer)) {
        free(text);
        return -ENOMEM;
    }
    *out_text = text;
    *out_length = writer.length;
    return 0;
}
