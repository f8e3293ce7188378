/* SPDX-License-Identifier: Apache-2.0
 * GET /sale/{sale}/draw.json and /sale/{sale}/roster/{part}: everything that is needed to draw
 * again. The rule is in docs/draw.md. */
#include "services/edge/answer.h"
#include "services/edge/service.h"

enum { DRAW_BYTES = 2048, PART_BYTES = TG_MAX_ROSTER_PART * (TG_ENTRANT_LENGTH + 1) + 1 };

static void write_hex(struct edge_writer *writer, const uint8_t *bytes, size_t length)
{
    char text[2 * TG_DRAW_BYTES + 1];
    tg_hex_encode(bytes, length, text);
    edge_write_string(writer, text);
}

static void write_bytes(struct edge_writer *writer, bool known, const uint8_t *bytes)
{
    if (known) {
        write_hex(writer, bytes, TG_DRAW_BYTES);
    } else {
        edge_write(writer, "null");
    }
}

void edge_write_commitment(struct edge_writer *writer, const struct tg_sale *sale)
{
    char text[sizeof("sha256:") + (size_t)2 * TG_DRAW_BYTES] = "sha256:";
    tg_hex_encode(sale->commitment, sizeof(sale->commitment), text + sizeof("sha256:") - 1);
    edge_write_string(writer, text);
    edge_write(writer, ",\"beacon\":");
    edge_write_string(writer, sale->beacon[0] != '\0' ? sale->beacon : "none");
    edge_write(writer, sale->beacon[0] != '\0' ? ",\"mode\":\"commit-reveal with beacon\""
                                               : ",\"mode\":\"commit-reveal only\"");
}

static void write_draw(struct edge_writer *writer, const struct tg_sale *sale)
{
    const struct tg_draw *draw = &sale->draw;
    edge_write(writer, "{\"sale\":");
    edge_write_string(writer, sale->name);
    edge_write(writer, ",\"generation\":");
    edge_write_number(writer, sale->generation);
    edge_write(writer, ",\"order\":");
    edge_write_string(writer, tg_order_name(sale->order));
    edge_write(writer, ",\"commitment\":");
    edge_write_commitment(writer, sale);
    edge_write(writer, ",\"frozen\":");
    edge_write(writer, draw->frozen ? "true" : "false");
    edge_write(writer, ",\"count\":");
    edge_write_number(writer, draw->count);
    edge_write(writer, ",\"indexAtOpen\":");
    edge_write_number(writer, draw->index_at_open);
    edge_write(writer, ",\"root\":");
    write_bytes(writer, draw->frozen, draw->root);
    edge_write(writer, ",\"beaconValue\":");
    write_hex(writer, draw->beacon, draw->beacon_length);
    edge_write(writer, ",\"secret\":");
    write_bytes(writer, draw->revealed, draw->secret);
    edge_write(writer, ",\"seed\":");
    write_bytes(writer, draw->revealed, draw->seed);
    edge_write(writer, ",\"entrantsPerPart\":");
    edge_write_number(writer, TG_MAX_ROSTER_PART);
    edge_write(writer, ",\"parts\":");
    edge_write_number(writer, (draw->count + TG_MAX_ROSTER_PART - 1) / TG_MAX_ROSTER_PART);
    edge_write(writer, "}");
}

void edge_draw(struct edge_request *request)
{
    char text[DRAW_BYTES];
    struct edge_writer writer;
    const struct tg_sale *sale = request->sale->sale;
    if (!tg_sale_draws(sale)) {
        edge_refuse_reason(request, TG_REASON_DRAW_UNKNOWN);
        return;
    }
    edge_write_begin(&writer, text, sizeof(text));
    write_draw(&writer, sale);
    if (!edge_write_end(&writer)) {
        edge_unknown(request);
        return;
    }
    const struct edge_reply reply = {
        .status = 200,
        .content_type = EDGE_JSON,
        .headers = sale->draw.revealed
                       ? "Cache-Control: public, max-age=60\r\nAccess-Control-Allow-Origin: *\r\n"
                       : "Cache-Control: public, max-age=1\r\nAccess-Control-Allow-Origin: *\r\n",
        .body = text,
        .length = writer.length};
    edge_answer_public(request, &reply);
}

/* One entrant a line. A part never changes, but the name of a sale may be used again. */
void edge_roster_part(struct edge_request *request)
{
    char text[PART_BYTES];
    const struct edge_roster *roster = &request->sale->roster;
    const uint64_t first = request->target.part * TG_MAX_ROSTER_PART;
    if (!request->sale->sale->draw.frozen ||
        (first >= roster->count && edge_roster_complete(roster))) {
        edge_refuse_reason(request, TG_REASON_DRAW_UNKNOWN);
        return;
    }
    if (!edge_roster_complete(roster)) {
        const struct edge_problem problem = {.reason = TG_REASON_TRY_AGAIN,
                                             .detail = "The roster is being read. Ask again.",
                                             .retry_after_ms = 1000};
        edge_refuse_request(request, &problem);
        return;
    }
    size_t length = 0;
    for (uint64_t i = first; i < roster->count && i < first + TG_MAX_ROSTER_PART; i++) {
        tg_base32_id_encode(roster->all[i], text + length);
        length += TG_ENTRANT_LENGTH;
        text[length++] = '\n';
    }
    const struct edge_reply reply = {
        .status = 200,
        .content_type = "text/plain; charset=utf-8",
        .headers = "Cache-Control: public, max-age=3600\r\nAccess-Control-Allow-Origin: *\r\n",
        .body = text,
        .length = length};
    edge_answer_public(request, &reply);
}
