/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/seal.h"

#include <assert.h>
#include <endian.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

enum { BLOCK_BYTES = 64, FOUR_BLOCKS = 4 * BLOCK_BYTES, STREAM_BYTES = 2 * FOUR_BLOCKS };

static_assert((int)TG_SEAL_NONCE_BYTES == (int)crypto_stream_chacha20_ietf_NONCEBYTES, "nonce");
static_assert((int)TG_SEAL_TAG_BYTES == (int)crypto_onetimeauth_poly1305_BYTES, "tag");
static_assert((int)TG_SEAL_KEY_BYTES == (int)crypto_stream_chacha20_ietf_KEYBYTES, "key");
static_assert((int)BLOCK_BYTES + (int)TG_SEAL_TEXT_BYTES_MAX == (int)STREAM_BYTES, "stream");

/* RFC 8439 2.6 and 2.8: of the zeros of block 0 comes the key of the authenticator, the text is
 * from block 1 on. Encrypts and decrypts. */
static void apply(const struct tg_seal *seal, const uint8_t *text, size_t length,
                  uint8_t blocks[STREAM_BYTES])
{
    const size_t bytes = BLOCK_BYTES + length <= FOUR_BLOCKS ? FOUR_BLOCKS : STREAM_BYTES;
    memset(blocks, 0, bytes);
    memcpy(blocks + BLOCK_BYTES, text, length);
    (void)crypto_stream_chacha20_ietf_xor_ic(blocks, blocks, bytes, seal->nonce, 0, seal->key);
}

static uint8_t *put_padded(uint8_t *at, const uint8_t *data, size_t length)
{
    memcpy(at, data, length);
    return at + (length + 15) / 16 * 16;
}

/* RFC 8439 2.8: both texts padded with zeros to 16, then both lengths. */
static void make_tag(const struct tg_seal *seal, const uint8_t *key, const uint8_t *sealed,
                     size_t length, uint8_t out_tag[TG_SEAL_TAG_BYTES])
{
    uint8_t said[TG_SEAL_OPEN_BYTES_MAX + TG_SEAL_TEXT_BYTES_MAX + 16] = {0};
    const uint64_t lengths[2] = {htole64(seal->open_length), htole64(length)};
    uint8_t *at = put_padded(said, seal->open, seal->open_length);
    at = put_padded(at, sealed, length);
    memcpy(at, lengths, sizeof(lengths));
    (void)crypto_onetimeauth_poly1305(out_tag, said, (size_t)(at + sizeof(lengths) - said), key);
}

void tg_seal(const struct tg_seal *seal, const uint8_t *text, size_t length, uint8_t *out_sealed)
{
    uint8_t blocks[STREAM_BYTES];
    assert(length <= TG_SEAL_TEXT_BYTES_MAX && seal->open_length <= TG_SEAL_OPEN_BYTES_MAX);
    apply(seal, text, length, blocks);
    memcpy(out_sealed, blocks + BLOCK_BYTES, length);
    make_tag(seal, blocks, out_sealed, length, out_sealed + length);
    sodium_memzero(blocks, sizeof(blocks));
}

int tg_unseal(const struct tg_seal *seal, const uint8_t *sealed, size_t length, uint8_t *out_text)
{
    uint8_t blocks[STREAM_BYTES], tag[TG_SEAL_TAG_BYTES];
    assert(seal->open_length <= TG_SEAL_OPEN_BYTES_MAX);
    if (length < TG_SEAL_TAG_BYTES || length > TG_SEAL_TEXT_BYTES_MAX + TG_SEAL_TAG_BYTES) {
        return TG_ERR_FORGED;
    }
    length -= TG_SEAL_TAG_BYTES;
    apply(seal, sealed, length, blocks);
    make_tag(seal, blocks, sealed, length, tag);
    const bool ours = crypto_verify_16(tag, sealed + length) == 0;
    if (ours) {
        memcpy(out_text, blocks + BLOCK_BYTES, length);
    }
    sodium_memzero(blocks, sizeof(blocks));
    return ours ? 0 : TG_ERR_FORGED;
}
