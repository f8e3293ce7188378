/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/identity.h"

#include <assert.h>
#include <endian.h>
#include <sodium.h>
#include <string.h>

enum { TAG_BYTES = crypto_generichash_BYTES_MAX };

static_assert(sizeof(crypto_generichash_state) <= sizeof(((struct tg_mac *)0)->state),
              "state fits");
static_assert(_Alignof(struct tg_mac) >= _Alignof(crypto_generichash_state), "state is aligned");

static crypto_generichash_state *state_of(struct tg_mac *mac)
{
    return (crypto_generichash_state *)(void *)mac->state;
}

static void put_little(uint8_t out_bytes[8], uint64_t value)
{
    const uint64_t little = htole64(value);
    memcpy(out_bytes, &little, sizeof(little));
}

void tg_mac_begin(struct tg_mac *mac, const uint8_t key[TG_KEY_BYTES], const char *domain)
{
    int error =
        crypto_generichash_init(state_of(mac), key, key != NULL ? TG_KEY_BYTES : 0, TAG_BYTES);
    assert(error == 0); /* lengths are constants within BLAKE2b's bounds */
    tg_mac_text(mac, domain);
}

void tg_mac_field(struct tg_mac *mac, const void *data, size_t length)
{
    uint8_t prefix[8];
    put_little(prefix, length);
    (void)crypto_generichash_update(state_of(mac), prefix, sizeof(prefix));
    (void)crypto_generichash_update(state_of(mac), data, length);
}

void tg_mac_text(struct tg_mac *mac, const char *text)
{
    tg_mac_field(mac, text, strlen(text));
}

void tg_mac_number(struct tg_mac *mac, uint64_t value)
{
    uint8_t bytes[8];
    put_little(bytes, value);
    tg_mac_field(mac, bytes, sizeof(bytes));
}

void tg_mac_end(struct tg_mac *mac, uint8_t *out_tag, size_t length)
{
    assert(length >= 16 && length <= TAG_BYTES);
    uint8_t tag[TAG_BYTES];
    (void)crypto_generichash_final(state_of(mac), tag, sizeof(tag));
    memcpy(out_tag, tag, length);
    sodium_memzero(mac, sizeof(*mac));
    sodium_memzero(tag, sizeof(tag));
}

bool tg_equal_constant(const void *left, const void *right, size_t length)
{
    return sodium_memcmp(left, right, length) == 0;
}

/* The fields every identity begins with. */
static void begin(struct tg_mac *mac, const uint8_t *key, const char *domain, const char *sale,
                  uint64_t generation)
{
    tg_mac_begin(mac, key, domain);
    tg_mac_text(mac, sale);
    tg_mac_number(mac, generation);
}

static void add_holder(struct tg_mac *mac, const struct tg_holder *holder)
{
    assert(holder->length <= sizeof(holder->bytes));
    tg_mac_number(mac, (uint64_t)holder->kind);
    tg_mac_field(mac, holder->bytes, holder->length);
}

void tg_place(const char *sale, uint64_t generation, const struct tg_holder *holder, uint64_t index,
              uint8_t out_place[TG_PLACE_BYTES])
{
    struct tg_mac mac;
    begin(&mac, NULL, "tidegate place 1", sale, generation);
    add_holder(&mac, holder);
    tg_mac_number(&mac, index);
    tg_mac_end(&mac, out_place, TG_PLACE_BYTES);
}

void tg_entrant(const uint8_t key[TG_KEY_BYTES], const char *sale, uint64_t generation,
                const struct tg_holder *holder, char out_entrant[TG_ENTRANT_LENGTH + 1])
{
    static_assert((int)TG_ENTRANT_LENGTH == (int)TG_BASE32_ID_LENGTH,
                  "an entrant is 128 bits in base32");
    struct tg_mac mac;
    uint8_t tag[16];
    begin(&mac, key, "tidegate entrant 1", sale, generation);
    add_holder(&mac, holder);
    tg_mac_end(&mac, tag, sizeof(tag));
    tg_base32_id_encode(tag, out_entrant);
}

void tg_reservation_id(const uint8_t key[TG_KEY_BYTES], const char *sale, uint64_t generation,
                       const uint8_t *user, size_t user_length, const char *idempotency_key,
                       char out_id[TG_RESERVATION_ID_LENGTH + 1])
{
    static const char prefix[4] = {'r', 'e', 's', '_'};
    struct tg_mac mac;
    uint8_t tag[16];
    begin(&mac, key, "tidegate reservation 1", sale, generation);
    tg_mac_field(&mac, user, user_length);
    tg_mac_text(&mac, idempotency_key);
    tg_mac_end(&mac, tag, sizeof(tag));
    memcpy(out_id, prefix, sizeof(prefix));
    tg_base32_id_encode(tag, out_id + sizeof(prefix));
}

void tg_jti(const uint8_t key[TG_KEY_BYTES], const char *sale, uint64_t generation,
            const uint8_t place[TG_PLACE_BYTES], const uint8_t *user, size_t user_length,
            uint64_t window, char out_jti[TG_JTI_LENGTH + 1])
{
    uint8_t bytes[8 + 16];
    static_assert(TG_BASE64URL_LENGTH(sizeof(bytes)) == TG_JTI_LENGTH, "window and MAC make a jti");
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(window >> (56 - 8 * i));
    }
    struct tg_mac mac;
    begin(&mac, key, "tidegate jti 1", sale, generation);
    tg_mac_field(&mac, place, TG_PLACE_BYTES);
    tg_mac_field(&mac, user, user_length);
    tg_mac_number(&mac, window);
    tg_mac_end(&mac, bytes + 8, 16);
    (void)tg_base64url_encode(bytes, sizeof(bytes), out_jti);
}
