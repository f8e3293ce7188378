/* SPDX-License-Identifier: Apache-2.0
 * GET /.well-known/jwks.json: public keys of passes (RFC 7517, RFC 8037), for any gateway or JWT
 * library. */
#include "services/edge/answer.h"

bool edge_jwks_prepare(struct edge *edge)
{
    struct edge_writer writer;
    edge_write_begin(&writer, edge->jwks, sizeof(edge->jwks));
    edge_write(&writer, "{\"keys\":[");
    for (size_t i = 0; i < edge->pass_count; i++) {
        char x[TG_BASE64URL_LENGTH(32) + 1];
        tg_base64url_encode(edge->passes[i].public_key, sizeof(edge->passes[i].public_key), x);
        edge_write(&writer, i == 0 ? "{" : ",{");
        edge_write(
            &writer,
            "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"use\":\"sig\",\"alg\":\"EdDSA\",\"kid\":");
        edge_write_string(&writer, edge->passes[i].id);
        edge_write(&writer, ",\"x\":");
        edge_write_string(&writer, x);
        edge_write(&writer, "}");
    }
    edge_write(&writer, "]}");
    edge->jwks_length = writer.length;
    return edge_write_end(&writer);
}

void edge_jwks(struct edge_request *request)
{
    const struct edge_reply reply = {
        .status = 200,
        .content_type = "application/jwk-set+json",
        .headers = "Cache-Control: public, max-age=300\r\nAccess-Control-Allow-Origin: *\r\n",
        .body = request->edge->jwks,
        .length = request->edge->jwks_length};
    edge_answer_public(request, &reply);
}
