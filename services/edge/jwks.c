/* SPDX-License-Identifier: Apache-2.0
 * GET /.well-known/jwks.json: public keys of passes (RFC 7517, RFC 8037), for any gateway or JWT
 * library. */
#include "services/edge/answer.h"

static void write_bytes(struct edge_writer *writer, const char *name,
                        const uint8_t bytes[TG_ES256_KEY_BYTES])
{
    char text[TG_BASE64URL_LENGTH(TG_ES256_KEY_BYTES) + 1];
    tg_base64url_encode(bytes, TG_ES256_KEY_BYTES, text);
    edge_write(writer, name);
    edge_write_string(writer, text);
}

static void write_eddsa(struct edge_writer *writer, const struct tg_verify_key *key)
{
    edge_write(writer, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"use\":\"sig\",\"alg\":\"EdDSA\","
                       "\"kid\":");
    edge_write_string(writer, key->id);
    write_bytes(writer, ",\"x\":", key->public_key);
    edge_write(writer, "}");
}

static void write_es256(struct edge_writer *writer, const char *id, const struct tg_es256 *key)
{
    uint8_t x[TG_ES256_KEY_BYTES], y[TG_ES256_KEY_BYTES];
    tg_es256_point(key, x, y);
    edge_write(writer, ",{\"kty\":\"EC\",\"crv\":\"P-256\",\"use\":\"sig\",\"alg\":\"ES256\","
                       "\"kid\":");
    edge_write_string(writer, id);
    write_bytes(writer, ",\"x\":", x);
    write_bytes(writer, ",\"y\":", y);
    edge_write(writer, "}");
}

bool edge_jwks_prepare(struct edge *edge)
{
    const struct tg_pass_keys *keys = &edge->passes;
    struct edge_writer writer;
    edge_write_begin(&writer, edge->jwks, sizeof(edge->jwks));
    edge_write(&writer, "{\"keys\":[");
    for (size_t i = 0; i < keys->eddsa_count; i++) {
        edge_write(&writer, i == 0 ? "" : ",");
        write_eddsa(&writer, &keys->eddsa[i]);
    }
    for (size_t i = 0; i < keys->es256_count; i++) {
        write_es256(&writer, keys->es256_ids[i], keys->es256[i]);
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
