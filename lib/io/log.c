/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/log.h"

#include "lib/io/now.h"
#include "lib/pure/limit.h"
#include "lib/pure/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 33, TAIL_BYTES = 2 /* "}\n" */ };

static char log_daemon[NAME_BYTES] = "tidegate";
static char log_instance[NAME_BYTES];
static enum tg_log_level log_level = TG_LOG_INFO;

/* A line in the making. Everything is appended whole or not at all, so it is always valid JSON. */
struct line {
    size_t length;
    char text[TG_MAX_LOG_LINE_BYTES];
};

void tg_log_open(const char *daemon, const char *instance, enum tg_log_level level)
{
    snprintf(log_daemon, sizeof(log_daemon), "%s", daemon);
    snprintf(log_instance, sizeof(log_instance), "%s", instance);
    log_level = level;
}

static const char *level_text(enum tg_log_level level)
{
    switch (level) {
    case TG_LOG_DEBUG:
        return "debug";
    case TG_LOG_INFO:
        return "info";
    case TG_LOG_WARN:
        return "warn";
    case TG_LOG_ERROR:
        return "error";
    }
    return "error";
}

static bool append(struct line *line, const char *text, size_t length, size_t keep_free)
{
    if (line->length + length + keep_free > sizeof(line->text)) {
        return false;
    }
    memcpy(line->text + line->length, text, length);
    line->length += length;
    return true;
}

/* Length of the valid UTF-8 sequence at the start of the text, or 0. */
static size_t sequence_length(const uint8_t *text, size_t length)
{
    size_t want = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    return want <= length && tg_utf8_valid(text, want) ? want : 0;
}

/* One character as JSON; takes its bytes from *text. False when the line is full. */
static bool append_character(struct line *line, const uint8_t **text, size_t left, size_t keep_free)
{
    const uint8_t *at = *text;
    size_t length = sequence_length(at, left);
    char escape[8];
    int escape_length;
    if (length == 0) {
        escape_length = snprintf(escape, sizeof(escape), "\\ufffd");
        length = 1;
    } else if (at[0] == '"' || at[0] == '\\') {
        escape_length = snprintf(escape, sizeof(escape), "\\%c", at[0]);
    } else if (at[0] < 0x20 || at[0] == 0x7f) {
        escape_length = snprintf(escape, sizeof(escape), "\\u%04x", at[0]);
    } else {
        *text += length;
        return append(line, (const char *)at, length, keep_free);
    }
    *text += length;
    return append(line, escape, (size_t)escape_length, keep_free);
}

static void append_text(struct line *line, const char *name, const char *value)
{
    size_t start = line->length;
    bool fits = append(line, ",\"", 2, TAIL_BYTES) &&
                append(line, name, strlen(name), TAIL_BYTES) &&
                append(line, "\":\"", 3, TAIL_BYTES + 1);
    if (!fits) {
        line->length = start;
        return;
    }
    const uint8_t *at = (const uint8_t *)value;
    const uint8_t *end = at + strlen(value);
    while (at < end && append_character(line, &at, (size_t)(end - at), TAIL_BYTES + 1)) {
    }
    bool closed = append(line, "\"", 1, TAIL_BYTES);
    assert(closed); /* its byte was kept free */
    (void)closed;
}

static void append_number(struct line *line, const char *name, int64_t value)
{
    char text[96];
    int length = snprintf(text, sizeof(text), ",\"%s\":%" PRId64, name, value);
    assert(length > 0 && (size_t)length < sizeof(text)); /* names are literals of ours */
    append(line, text, (size_t)length, TAIL_BYTES);
}

static void begin(struct line *line, enum tg_log_level level, const char *event)
{
    char when[TG_RFC3339_BYTES];
    if (tg_wall_format(tg_now_wall(), when) != 0) {
        snprintf(when, sizeof(when), "unknown");
    }
    line->length = 0;
    append(line, "{\"ts\":\"", 7, TAIL_BYTES);
    append(line, when, strlen(when), TAIL_BYTES);
    append(line, "\"", 1, TAIL_BYTES);
    append_text(line, "level", level_text(level));
    append_text(line, "daemon", log_daemon);
    append_text(line, "instance", log_instance);
    append_text(line, "event", event);
}

void tg_log_line(enum tg_log_level level, const char *event, const struct tg_log_field *fields)
{
    if (level < log_level) {
        return;
    }
    struct line line;
    begin(&line, level, event);
    for (const struct tg_log_field *field = fields; field->kind != TG_LOG_FIELD_END; field++) {
        if (field->kind == TG_LOG_FIELD_NUMBER) {
            append_number(&line, field->name, field->number);
        } else {
            append_text(&line, field->name, field->text != NULL ? field->text : "");
        }
    }
    append(&line, "}\n", TAIL_BYTES, 0);
    /* One write a line, so that lines of several processes never mix; a full pipe loses the line,
     * not the daemon. */
    ssize_t written = write(STDERR_FILENO, line.text, line.length);
    (void)written;
}

void tg_log_step(const char *event, const char *sale, const char *reservation_id,
                 const char *traceparent)
{
    bool traced = traceparent != NULL && traceparent[0] != '\0';
    const struct tg_log_field fields[] = {
        TG_TEXT_FIELD("sale", sale),
        TG_TEXT_FIELD("reservation", reservation_id),
        {.name = "traceparent",
         .kind = traced ? TG_LOG_FIELD_TEXT : TG_LOG_FIELD_END,
         .text = traceparent},
        {.kind = TG_LOG_FIELD_END},
    };
    tg_log_line(TG_LOG_INFO, event, fields);
}
