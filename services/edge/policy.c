/* SPDX-License-Identifier: Apache-2.0
 * GET /sale/{sale}/policy: what was promised before the sale, for everybody to read. */
#include "services/edge/answer.h"
#include "services/edge/score.h"

static void write_seconds(struct edge_writer *writer, const char *name, int64_t ms)
{
    edge_write(writer, ",\"");
    edge_write(writer, name);
    edge_write(writer, "\":");
    edge_write_milli(writer, (uint64_t)ms);
}

static void write_items(struct edge_writer *writer, const struct tg_sale *sale)
{
    edge_write(writer, ",\"items\":[");
    for (uint32_t i = 0; i < sale->item_count; i++) {
        edge_write(writer, i == 0 ? "{\"sku\":" : ",{\"sku\":");
        edge_write_string(writer, sale->items[i].sku);
        edge_write(writer, ",\"units\":");
        edge_write_number(writer, sale->items[i].units);
        edge_write(writer, ",\"price\":");
        edge_write_number(writer, sale->items[i].price_minor);
        edge_write(writer, ",\"currency\":");
        edge_write_string(writer, sale->items[i].currency);
        edge_write(writer, "}");
    }
    edge_write(writer, "]");
}

static void write_limits(struct edge_writer *writer, const struct tg_sale *sale)
{
    edge_write(writer, ",\"limits\":{\"perBuyer\":");
    edge_write_number(writer, sale->limit_per_buyer);
    write_seconds(writer, "holdForSeconds", sale->hold_ms);
    write_seconds(writer, "graceSeconds", sale->grace_ms);
    write_seconds(writer, "extendBySeconds", sale->extend_ms);
    edge_write(writer, ",\"extensions\":");
    edge_write_number(writer, sale->extensions_max);
    edge_write(writer, "},\"pace\":{\"startPerSecond\":");
    edge_write_milli(writer, sale->pace_start_milli);
    edge_write(writer, ",\"minPerSecond\":");
    edge_write_milli(writer, sale->pace_min_milli);
    edge_write(writer, ",\"maxPerSecond\":");
    edge_write_milli(writer, sale->pace_max_milli);
    edge_write(writer, "}");
}

static void write_order(struct edge_writer *writer, const struct tg_sale *sale)
{
    static const char *const places[] = {
        [TG_ORDER_FIFO] =
            "One ticket is one place, in the order of arrival. Another device without "
            "sign-in has another place.",
        [TG_ORDER_RANDOM] =
            "Everybody who takes a ticket before the opening is drawn, once per account, on "
            "whatever device; when, and how often, does not matter. Later arrivals follow in "
            "their order.",
        [TG_ORDER_LOTTERY] =
            "Only who takes a ticket before the opening takes part, once per account, on whatever "
            "device; when, and how often, does not matter."};
    edge_write(writer, ",\"order\":");
    edge_write_string(writer, tg_order_name(sale->order));
    edge_write(writer, ",\"places\":");
    edge_write_string(writer, places[sale->order]);
    if (!tg_sale_draws(sale)) {
        edge_write(writer, ",\"signIn\":\"pass\"");
        return;
    }
    edge_write(writer, ",\"signIn\":\"ticket\",\"commitment\":");
    edge_write_commitment(writer, sale);
    edge_write(writer, ",\"draw\":\"draw.json\"");
}

void edge_policy(struct edge_request *request)
{
    char text[EDGE_POLICY_BYTES];
    struct edge_writer writer;
    const struct tg_sale *sale = request->sale->sale;
    edge_write_begin(&writer, text, sizeof(text));
    edge_write(&writer, "{\"sale\":");
    edge_write_string(&writer, sale->name);
    edge_write(&writer, ",\"generation\":");
    edge_write_number(&writer, sale->generation);
    edge_write(&writer, ",\"opensAt\":");
    edge_write_time(&writer, sale->opens_at);
    write_order(&writer, sale);
    edge_write(&writer, ",\"challenge\":");
    edge_write_string(&writer, tg_challenge_before_name(sale->challenge));
    write_items(&writer, sale);
    write_limits(&writer, sale);
    edge_write(&writer, sale->remaining_bucketed ? ",\"show\":{\"remaining\":\"bucketed\"}"
                                                 : ",\"show\":{\"remaining\":\"exact\"}");
    edge_write_lanes(request->edge, &writer);
    edge_write(&writer, ",\"position\":\"rank - watermark, never below 0; the wait is position / "
                        "pace x 1.25, rounded up\""
                        ",\"automation\":\"Programs may take part. Nobody is let in faster for "
                        "asking more often: the "
                        "order is that of the tickets.\"}");
    if (!edge_write_end(&writer)) {
        edge_unknown(request);
        return;
    }
    const struct edge_reply reply = {
        .status = 200,
        .content_type = EDGE_JSON,
        .headers = "Cache-Control: public, max-age=60\r\nAccess-Control-Allow-Origin: *\r\n",
        .body = text,
        .length = writer.length};
    edge_answer_public(request, &reply);
}
