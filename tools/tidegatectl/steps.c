/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/steps.h"

#include "tools/tidegatectl/ctl.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool take_text(const json_t *line, const char *name, char *out_text, size_t capacity)
{
    const json_t *value = json_object_get(line, name);
    if (!json_is_string(value)) {
        return false;
    }
    ctl_printable(json_string_value(value), json_string_length(value), out_text, capacity);
    return true;
}

static bool read_step(const json_t *line, const char *reservation, struct ctl_step *out_step)
{
    char when[40];
    const char *of = json_string_value(json_object_get(line, "reservation"));
    if (of == NULL || strcmp(of, reservation) != 0 || !take_text(line, "ts", when, sizeof(when)) ||
        tg_wall_parse(when, &out_step->at) != 0 ||
        !take_text(line, "event", out_step->event, sizeof(out_step->event)) ||
        !take_text(line, "daemon", out_step->daemon, sizeof(out_step->daemon)) ||
        !take_text(line, "instance", out_step->instance, sizeof(out_step->instance))) {
        return false;
    }
    if (!take_text(line, "traceparent", out_step->traceparent, sizeof(out_step->traceparent))) {
        out_step->traceparent[0] = '\0';
    }
    return true;
}

void ctl_steps_take_line(struct ctl_steps *steps, const char *reservation, const char *line,
                         size_t length)
{
    struct ctl_step step;
    if (memmem(line, length, reservation, strlen(reservation)) == NULL) {
        return; /* most lines: not worth parsing */
    }
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    if (object != NULL && read_step(object, reservation, &step)) {
        if (steps->count == CTL_STEPS_MAX) {
            steps->dropped++;
        } else {
            step.order = steps->count;
            steps->steps[steps->count++] = step;
        }
    }
    json_decref(object);
}

static int read_file(struct ctl_steps *steps, const char *reservation, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -errno;
    }
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t length = getline(&line, &capacity, file); length >= 0;
         length = getline(&line, &capacity, file)) {
        ctl_steps_take_line(steps, reservation, line, (size_t)length);
    }
    int error = ferror(file) != 0 ? -EIO : 0;
    free(line);
    (void)fclose(file);
    return error;
}

int ctl_steps_read_folder(struct ctl_steps *steps, const char *reservation, const char *folder,
                          FILE *errors)
{
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        return -errno;
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char path[4096];
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 4, ".log") != 0 ||
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= (int)sizeof(path)) {
            continue;
        }
        int error = read_file(steps, reservation, path);
        if (error != 0) {
            (void)fprintf(errors, "tidegatectl: %s: %s\n", path, tg_error_text(error));
        }
    }
    (void)closedir(directory);
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct ctl_step *a = left;
    const struct ctl_step *b = right;
    if (a->at.ms != b->at.ms) {
        return a->at.ms < b->at.ms ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

void ctl_steps_sort(struct ctl_steps *steps)
{
    qsort(steps->steps, steps->count, sizeof(steps->steps[0]), compare);
}
