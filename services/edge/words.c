/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/words.h"

#include "services/edge/page.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LANGUAGES_MAX = 32, TAG_BYTES = 4 };

struct edge_words {
    char language[TAG_BYTES];
    json_t *messages;
};

static struct edge_words all[LANGUAGES_MAX];
static size_t count;

static struct edge_words *find(const char *tag, size_t length)
{
    size_t primary = 0;
    while (primary < length && tag[primary] != '-') {
        primary++;
    }
    for (size_t i = 0; i < count; i++) {
        if (strlen(all[i].language) == primary && strncasecmp(all[i].language, tag, primary) == 0) {
            return &all[i];
        }
    }
    return NULL;
}

/* "messages.de.json" is of "de"; false for another file. */
static bool language_of(const char *name, char out_language[TAG_BYTES])
{
    static const char before[] = "messages.", behind[] = ".json";
    size_t length = strlen(name), fixed = sizeof(before) + sizeof(behind) - 2;
    if (length <= fixed || length - fixed >= TAG_BYTES ||
        strncmp(name, before, sizeof(before) - 1) != 0 ||
        strcmp(name + length - sizeof(behind) + 1, behind) != 0) {
        return false;
    }
    memcpy(out_language, name + sizeof(before) - 1, length - fixed);
    out_language[length - fixed] = '\0';
    return true;
}

static int take(const char *name)
{
    struct edge_words words;
    json_error_t fault;
    size_t length;
    if (!language_of(name, words.language) ||
        find(words.language, strlen(words.language)) != NULL || count == LANGUAGES_MAX) {
        return 0;
    }
    const char *text = edge_page_find(name, &length);
    words.messages = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
    if (!json_is_object(words.messages)) {
        fprintf(stderr, "TIDEGATE_EDGE_PAGE: %s: line %d: %s; expected an object of messages\n",
                name, fault.line, fault.text);
        json_decref(words.messages);
        return TG_ERR_MALFORMED;
    }
    all[count++] = words;
    return 0;
}

int edge_words_load(void)
{
    int error = 0;
    for (size_t i = 0; error == 0 && edge_page_name(i) != NULL; i++) {
        error = take(edge_page_name(i));
    }
    return error == 0 && find("en", 2) == NULL ? TG_ERR_SETTING : error;
}

void edge_words_free(void)
{
    while (count > 0) {
        json_decref(all[--count].messages);
    }
}

static const struct edge_words *accepted_words(const char *accepted)
{
    while (accepted != NULL && *accepted != '\0') {
        accepted += strspn(accepted, ", ");
        const struct edge_words *words = find(accepted, strcspn(accepted, ",; "));
        if (words != NULL) {
            return words;
        }
        accepted += strcspn(accepted, ",");
    }
    return NULL;
}

const struct edge_words *edge_words_choose(const char *asked, size_t asked_length,
                                           const char *accepted)
{
    const struct edge_words *words = asked != NULL ? find(asked, asked_length) : NULL;
    if (words == NULL) {
        words = accepted_words(accepted);
    }
    return words != NULL ? words : find("en", 2);
}

const char *edge_words_language(const struct edge_words *words)
{
    return words->language;
}

const char *edge_words_say(const struct edge_words *words, const char *key)
{
    const json_t *message = json_object_get(words->messages, key);
    if (json_is_object(message)) {
        message = json_object_get(message, "other");
    }
    const char *text = json_string_value(message);
    return text != NULL ? text : "";
}
