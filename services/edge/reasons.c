/* SPDX-License-Identifier: Apache-2.0
 * GET /reasons: what every refusal means. The type of a problem document points into this page. */
#include "services/edge/answer.h"

enum { PAGE_BYTES = 16384 };

static void write_reason(struct edge_writer *writer, const struct tg_reason_row *row)
{
    static const char *const retries[] = {[TG_RETRY_NEVER] =
                                              "the same request will be refused again",
                                          [TG_RETRY_FRESH] = "a changed request may succeed",
                                          [TG_RETRY_LATER] = "the same request may succeed later"};
    edge_write(writer, "<dt id=\"");
    edge_write(writer, row->code);
    edge_write(writer, "\"><code>");
    edge_write(writer, row->code);
    edge_write(writer, "</code> (");
    edge_write_number(writer, (uint64_t)row->status);
    edge_write(writer, ") ");
    edge_write_html(writer, row->title);
    edge_write(writer, "</dt><dd>");
    edge_write_html(writer, row->detail);
    edge_write(writer, " Retry: ");
    edge_write(writer, retries[row->retry]);
    edge_write(writer, ".</dd>\n");
}

void edge_reasons(struct edge_request *request)
{
    static char text[PAGE_BYTES]; /* the same for everybody: made once */
    static size_t length;
    if (length == 0) {
        struct edge_writer writer;
        edge_write_begin(&writer, text, sizeof(text));
        edge_write(&writer, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
                            "<title>Reasons</title><h1>Reasons</h1>\n<dl>\n");
        for (int reason = TG_REASON_NONE + 1; reason < TG_REASON_COUNT; reason++) {
            const struct tg_reason_row *row = tg_reason_row((enum tg_reason)reason);
            if (row->status != 0) {
                write_reason(&writer, row);
            }
        }
        edge_write(&writer, "</dl>\n</html>\n");
        if (!edge_write_end(&writer)) {
            edge_unknown(request);
            return;
        }
        length = writer.length;
    }
    const struct edge_reply reply = {
        .status = 200,
        .content_type = "text/html; charset=utf-8",
        .headers = "Cache-Control: public, max-age=3600\r\n"
                   "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
                   "X-Content-Type-Options: nosniff\r\n",
        .body = text,
        .length = length};
    edge_answer_public(request, &reply);
}
