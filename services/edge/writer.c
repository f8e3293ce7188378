/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/writer.h"

#include "lib/io/http_problem.h"
#include "lib/pure/number.h"

#include <string.h>

void edge_write_begin(struct edge_writer *writer, char *text, size_t capacity)
{
    *writer = (struct edge_writer){.text = text, .capacity = capacity - 1};
}

void edge_write_bytes(struct edge_writer *writer, const char *data, size_t length)
{
    if (writer->full || length > writer->capacity - writer->length) {
        writer->full = true;
        return;
    }
    memcpy(writer->text + writer->length, data, length);
    writer->length += length;
}

void edge_write_number(struct edge_writer *writer, uint64_t number)
{
    char digits[24];
    edge_write_bytes(writer, digits, tg_unsigned_format(number, digits));
}

void edge_write_string(struct edge_writer *writer, const char *text)
{
    char escaped[1024];
    size_t length = tg_http_json_escape(text, strlen(text), escaped, sizeof(escaped));
    edge_write(writer, "\"");
    edge_write_bytes(writer, escaped, length);
    edge_write(writer, "\"");
}

void edge_write_time(struct edge_writer *writer, struct tg_wall wall)
{
    char text[TG_RFC3339_BYTES];
    if (tg_wall_format(wall, text) != 0) {
        edge_write(writer, "null");
        return;
    }
    edge_write(writer, "\"");
    edge_write(writer, text);
    edge_write(writer, "\"");
}

void edge_write_milli(struct edge_writer *writer, uint64_t milli)
{
    char digits[] = {'.', (char)('0' + milli / 100 % 10), (char)('0' + milli / 10 % 10),
                     (char)('0' + milli % 10)};
    size_t length = sizeof(digits);
    while (length > 1 && digits[length - 1] == '0') {
        length--;
    }
    edge_write_number(writer, milli / 1000);
    edge_write_bytes(writer, digits, length > 1 ? length : 0);
}

void edge_write_html(struct edge_writer *writer, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            edge_write(writer, "&amp;");
            break;
        case '<':
            edge_write(writer, "&lt;");
            break;
        case '>':
            edge_write(writer, "&gt;");
            break;
        case '"':
            edge_write(writer, "&quot;");
            break;
        case '\'':
            edge_write(writer, "&#39;");
            break;
        default:
            edge_write_bytes(writer, text, 1);
            break;
        }
    }
}

bool edge_write_end(struct edge_writer *writer)
{
    writer->text[writer->length] = '\0';
    return !writer->full;
}
