/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/ctl.h"

#include "lib/pure/clock.h"
#include "lib/pure/text.h"
#include "tools/tidegatectl/state.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

const char *ctl_colour(const struct ctl_options *options, enum ctl_colour colour)
{
    if (!options->color) {
        return "";
    }
    switch (colour) {
    case CTL_PLAIN:
        return "\033[0m";
    case CTL_BOLD:
        return "\033[1m";
    case CTL_GREEN:
        return "\033[32m";
    case CTL_YELLOW:
        return "\033[33m";
    case CTL_RED:
        return "\033[31m";
    case CTL_DIM:
        return "\033[2m";
    }
    return "";
}

/* Whether YAML reads this text as a text also without quotes: letters, and no word that YAML knows.
 */
static bool reads_as_text(const char *text, size_t length)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n"};
    bool good = length > 0;
    for (size_t i = 0; good && i < length; i++) {
        const char letter = text[i];
        good = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    }
    for (size_t i = 0; good && i < sizeof(words) / sizeof(words[0]); i++) {
        good = strcasecmp(text, words[i]) != 0;
    }
    return good;
}

/* JSON is YAML in another style: what the parser reads of it, the emitter writes in blocks. */
static void restyle(yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        event->data.scalar.style = YAML_ANY_SCALAR_STYLE;
        event->data.scalar.plain_implicit |=
            reads_as_text((const char *)event->data.scalar.value, event->data.scalar.length);
        break;
    case YAML_SEQUENCE_START_EVENT:
        event->data.sequence_start.style = YAML_BLOCK_SEQUENCE_STYLE;
        break;
    case YAML_MAPPING_START_EVENT:
        event->data.mapping_start.style = YAML_BLOCK_MAPPING_STYLE;
        break;
    case YAML_DOCUMENT_START_EVENT:
        event->data.document_start.implicit = 0;
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_ALIAS_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        break;
    }
}

static void print_yaml(const char *text)
{
    yaml_parser_t parser;
    yaml_emitter_t emitter;
    yaml_event_t event;
    bool more = yaml_parser_initialize(&parser) == 1;
    more &= yaml_emitter_initialize(&emitter) == 1;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    yaml_emitter_set_output_file(&emitter, stdout);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    while (more && yaml_parser_parse(&parser, &event) == 1) {
        more = event.type != YAML_STREAM_END_EVENT;
        restyle(&event);
        more &= yaml_emitter_emit(&emitter, &event) == 1; /* takes the event */
    }
    yaml_emitter_delete(&emitter);
    yaml_parser_delete(&parser);
}

void ctl_print_document(enum ctl_format format, json_t *take_document)
{
    char *text = json_dumps(take_document, JSON_COMPACT);
    json_decref(take_document);
    if (text == NULL) {
        (void)fprintf(stderr, "tidegatectl: out of memory\n");
        return;
    }
    if (format == CTL_YAML) {
        print_yaml(text);
    } else {
        (void)puts(text);
    }
    (void)fflush(stdout);
    free(text);
}

void ctl_printable(const char *text, size_t length, char *out_text, size_t capacity)
{
    size_t filled = 0;
    for (size_t at = 0; at < length;) {
        size_t count = 1;
        while (count < 4 && at + count < length &&
               ((unsigned char)text[at + count] & 0xc0) == 0x80) {
            count++;
        }
        bool good =
            tg_user_valid((const uint8_t *)text + at, count); /* one character, no control */
        size_t wanted = good ? count : 1;
        if (filled + wanted >= capacity) {
            break;
        }
        memcpy(out_text + filled, good ? text + at : "?", wanted);
        filled += wanted;
        at += count;
    }
    out_text[filled] = '\0';
}

bool ctl_duration(const char *option, const char *text, int64_t min_ms, int64_t max_ms,
                  int64_t *out_ms)
{
    int64_t ms = 0;
    if (tg_duration_parse(text, &ms) != 0 || ms < min_ms || ms > max_ms) {
        char shown[64], min[CTL_VALUE_BYTES], max[CTL_VALUE_BYTES];
        ctl_printable(text, strlen(text), shown, sizeof(shown));
        ctl_duration_text(min_ms, min);
        ctl_duration_text(max_ms, max);
        (void)fprintf(stderr,
                      "tidegatectl: %s: expected a duration from %s to %s such as 250ms, 5s, 10m "
                      "or 2h, got %s\n",
                      option, min, max, shown);
        return false;
    }
    *out_ms = ms;
    return true;
}

bool ctl_sale_name(const char *text)
{
    if (!tg_sale_name_valid(text, strlen(text))) {
        char shown[80];
        ctl_printable(text, strlen(text), shown, sizeof(shown));
        (void)fprintf(
            stderr, "tidegatectl: SALE: expected 1 to 64 of A-Z a-z 0-9 _ -, got \"%s\"\n", shown);
        return false;
    }
    return true;
}

bool ctl_needs_keys(const struct ctl_options *options)
{
    if (options->keys == NULL) {
        (void)fprintf(stderr, "tidegatectl: where are the keys? Set TIDEGATE_KEYS to the folder "
                              "that `tidegatectl keys "
                              "new FOLDER` made, or run where run/env is\n");
        return false;
    }
    return true;
}

bool ctl_cause_good(const char *cause)
{
    enum { CAUSE_BYTES_MAX = 127 };
    size_t length = cause != NULL ? strlen(cause) : 0;
    if (cause != NULL &&
        (length > CAUSE_BYTES_MAX || !tg_user_valid((const uint8_t *)cause, length))) {
        (void)fprintf(
            stderr,
            "tidegatectl: --cause: expected 1 to %d bytes of text without control characters\n",
            CAUSE_BYTES_MAX);
        return false;
    }
    return true;
}
