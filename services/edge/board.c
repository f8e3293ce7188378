/* SPDX-License-Identifier: Apache-2.0
 * GET /sale/{sale}/board: one small document for everybody. Made at most once in 200 ms and when
 * something changed; its tag covers everything but the time it was made. */
#include "services/edge/answer.h"

#include <sodium.h>
#include <string.h>

enum { REMAKE_MS = 200 };

static enum tg_reason notice_of(const struct edge_request *request, enum edge_state state)
{
    uint64_t free, held;
    if (state == EDGE_PAUSED) {
        return edge_pause_notice(&request->view, request->now);
    }
    bool known = edge_units(&request->view, request->now, &free, &held);
    return state == EDGE_OPEN && known && free == 0 && held > 0 ? TG_REASON_NOTICE_ALL_HELD
                                                                : TG_REASON_NONE;
}

static void write_field(struct edge_writer *writer, const char *name, uint64_t number)
{
    edge_write(writer, ",\"");
    edge_write(writer, name);
    edge_write(writer, "\":");
    edge_write_number(writer, number);
}

static void write_seed(struct edge_writer *writer, const struct tg_board_view *view)
{
    char hex[65];
    edge_write(writer, ",\"seed\":");
    if (!view->revealed) {
        edge_write(writer, "null");
        return;
    }
    tg_hex_encode(view->seed, sizeof(view->seed), hex);
    edge_write_string(writer, hex);
}

static void write_units(const struct edge_request *request, struct edge_writer *writer)
{
    uint64_t free, held;
    if (!edge_units(&request->view, request->now, &free, &held)) {
        edge_write(writer, ",\"remaining\":null,\"held\":null");
        return;
    }
    write_field(writer, "remaining",
                request->sale->sale->remaining_bucketed ? edge_bucket(free) : free);
    write_field(writer, "held", held);
}

/* Everything but `now`. */
static void write_content(const struct edge_request *request, enum edge_state state,
                          struct edge_writer *writer)
{
    const struct edge_board *board = &request->sale->board;
    const struct tg_sale *sale = request->sale->sale;
    enum tg_reason notice = notice_of(request, state);
    edge_write(writer, "{\"state\":\"");
    edge_write(writer, edge_state_name(state));
    edge_write(writer, "\",\"policy\":\"");
    edge_write(writer, tg_order_name(sale->order));
    edge_write(writer, "\",\"opensAt\":");
    edge_write_time(writer, sale->opens_at);
    write_field(writer, "watermark", board->view.watermark);
    write_field(writer, "presentAtOpen", board->view.present_at_open);
    write_field(writer, "indexAtOpen", board->view.index_at_open);
    write_seed(writer, &board->view);
    edge_write(writer, ",\"pacePerSecond\":");
    edge_write_milli(writer, board->view.pace_milli);
    write_field(writer, "waiting", board->waiting);
    write_units(request, writer);
    write_field(writer, "pollSeconds", board->poll_seconds > 0 ? board->poll_seconds : 2);
    edge_write(writer, ",\"notice\":");
    if (notice == TG_REASON_NONE) {
        edge_write(writer, "null");
    } else {
        edge_write_string(writer, tg_reason_code(notice));
    }
    write_field(writer, "generation", sale->generation);
    write_field(writer, "term", board->term);
    write_field(writer, "version", board->version);
}

static void make(const struct edge_request *request, enum edge_state state)
{
    struct edge_document *document = &request->sale->document;
    struct edge_writer writer, headers;
    uint8_t digest[8];
    edge_write_begin(&writer, document->text, sizeof(document->text));
    write_content(request, state, &writer);
    _Static_assert(crypto_shorthash_BYTES == sizeof(digest), "tag");
    static const uint8_t key[crypto_shorthash_KEYBYTES]; /* a tag, not a secret */
    crypto_shorthash(digest, (const uint8_t *)document->text, writer.length, key);
    document->etag[0] = '"';
    tg_hex_encode(digest, sizeof(digest), document->etag + 1);
    memcpy(document->etag + 1 + 2 * sizeof(digest), "\"", 2);
    edge_write(&writer, ",\"now\":");
    edge_write_time(&writer, request->now.wall);
    edge_write(&writer, "}");
    edge_write_end(&writer);
    document->length = writer.length;
    edge_write_begin(&headers, document->headers, sizeof(document->headers));
    edge_write(&headers, "Cache-Control: public, max-age=1, s-maxage=1, stale-if-error=30\r\n"
                         "Access-Control-Allow-Origin: *\r\nETag: ");
    edge_write(&headers, document->etag);
    edge_write(&headers, "\r\n");
    edge_write_end(&headers);
    document->made = request->now.mono;
    document->state = state;
    document->stale = false;
}

void edge_board_document(struct edge_request *request)
{
    struct edge_document *document = &request->sale->document;
    enum edge_state state = edge_state(&request->view, request->now);
    if (document->length == 0 || document->stale || state != document->state ||
        request->now.mono.ms - document->made.ms >= REMAKE_MS) {
        make(request, state);
    }
    struct edge_reply reply = {.status = 200,
                               .content_type = EDGE_JSON,
                               .headers = document->headers,
                               .body = document->text,
                               .length = document->length};
    if (edge_tag_matches(request, document->etag)) {
        reply = (struct edge_reply){.status = 304, .headers = document->headers};
    }
    edge_answer_public(request, &reply);
}
