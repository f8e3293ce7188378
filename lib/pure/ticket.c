/* SPDX-License-Identifier: Apache-2.0
 * Binary form: version, key id, nonce, then sealed: sale (length, bytes), generation, holder (kind,
 * length, bytes), arrived, index, flags, lane. Numbers are 8 bytes big-endian; version and key id
 * are authenticated beside. */
#include "lib/pure/ticket.h"

#include "lib/pure/seal.h"

#include <assert.h>
#include <endian.h>
#include <sodium.h>
#include <string.h>

enum {
    VERSION = 1,
    OPEN_BYTES = 2, /* version, key id */
    TAG_BYTES = TG_SEAL_TAG_BYTES,
    FIXED_BYTES = 1 + 8 + 2 + 8 + 8 + 2,
    INNER_BYTES_MAX = FIXED_BYTES + TG_MAX_SALE_NAME_BYTES + TG_MAX_USER_BYTES,
    OUTER_BYTES_MAX = OPEN_BYTES + TG_TICKET_NONCE_BYTES + INNER_BYTES_MAX + TAG_BYTES,
    VISITOR_BYTES = 16,
    EARLY = 1, /* flags */
    PROVED = 2
};

static_assert((int)TG_TICKET_NONCE_BYTES == (int)crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
              "nonce");
static_assert((int)TG_KEY_BYTES == (int)TG_SEAL_KEY_BYTES, "key");
static_assert((int)TG_TICKET_PREFIX_BYTES == (int)crypto_core_hchacha20_INPUTBYTES, "prefix");
static_assert(TG_BASE64URL_LENGTH(OUTER_BYTES_MAX) <= TG_MAX_TICKET_BYTES, "longest ticket");
static_assert((int)INNER_BYTES_MAX <= (int)TG_SEAL_TEXT_BYTES_MAX, "longest ticket");

static uint8_t *put_number(uint8_t *at, uint64_t value)
{
    const uint64_t big = htobe64(value);
    memcpy(at, &big, sizeof(big));
    return at + sizeof(big);
}

static uint64_t read_number(const uint8_t *at)
{
    uint64_t big;
    memcpy(&big, at, sizeof(big));
    return be64toh(big);
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t length)
{
    *at++ = (uint8_t)length;
    memcpy(at, bytes, length);
    return at + length;
}

static size_t write_inner(const struct tg_ticket *ticket, uint8_t *out_inner)
{
    size_t sale_length = strnlen(ticket->sale, sizeof(ticket->sale));
    assert(sale_length <= TG_MAX_SALE_NAME_BYTES && ticket->holder.length <= TG_MAX_USER_BYTES);
    uint8_t *at = put_bytes(out_inner, ticket->sale, sale_length);
    at = put_number(at, ticket->generation);
    *at++ = (uint8_t)ticket->holder.kind;
    at = put_bytes(at, ticket->holder.bytes, ticket->holder.length);
    at = put_number(at, (uint64_t)ticket->arrived.ms);
    at = put_number(at, ticket->index);
    *at++ = (uint8_t)((ticket->early ? EARLY : 0) | (ticket->proved ? PROVED : 0));
    *at++ = (uint8_t)ticket->lane;
    return (size_t)(at - out_inner);
}

/* XChaCha20-Poly1305 is ChaCha20-Poly1305 under the subkey, with four zeros and the rest of the
 * nonce. Source: draft-irtf-cfrg-xchacha-03, 2.3. `outer` begins with what stays open, then the
 * nonce. */
static struct tg_seal inner_seal(const uint8_t *outer, const struct tg_subkey *subkey)
{
    struct tg_seal seal = {
        .key = subkey->key, .nonce = {0}, .open = outer, .open_length = OPEN_BYTES};
    memcpy(seal.nonce + 4, outer + OPEN_BYTES + TG_TICKET_PREFIX_BYTES, 8);
    return seal;
}

/* A prefix is random in its every byte: one of them finds the slot. */
static struct tg_subkey *slot_of(const struct tg_key_ring *ring, const uint8_t *nonce)
{
    return ring->subkeys != NULL ? &ring->subkeys->slots[nonce[0] % TG_SUBKEYS] : NULL;
}

/* The subkey of a key and a nonce: one remembered, or *fresh, derived. */
static const struct tg_subkey *take_subkey(const struct tg_key_ring *ring, size_t which,
                                           const uint8_t *nonce, struct tg_subkey *fresh)
{
    const struct tg_subkey *slot = slot_of(ring, nonce);
    if (slot != NULL && slot->id == ring->keys[which].id &&
        memcmp(slot->prefix, nonce, TG_TICKET_PREFIX_BYTES) == 0) {
        return slot;
    }
    fresh->id = ring->keys[which].id;
    memcpy(fresh->prefix, nonce, TG_TICKET_PREFIX_BYTES);
    (void)crypto_core_hchacha20(fresh->key, nonce, ring->keys[which].key, NULL);
    return fresh;
}

/* Only what sealed or opened a ticket of ours is kept: nobody else pushes it out. */
static void keep_subkey(const struct tg_key_ring *ring, struct tg_subkey *fresh)
{
    struct tg_subkey *slot = slot_of(ring, fresh->prefix);
    if (slot != NULL) {
        *slot = *fresh;
    }
    sodium_memzero(fresh, sizeof(*fresh));
}

size_t tg_ticket_seal(const struct tg_key_ring *ring, const struct tg_ticket *ticket,
                      const uint8_t nonce[TG_TICKET_NONCE_BYTES], char *out_text)
{
    assert(ring->keys[0].id != 0);
    uint8_t text[INNER_BYTES_MAX];
    uint8_t outer[OUTER_BYTES_MAX] = {VERSION, ring->keys[0].id};
    const size_t length = write_inner(ticket, text);
    struct tg_subkey fresh;
    const struct tg_subkey *subkey = take_subkey(ring, 0, nonce, &fresh);
    memcpy(outer + OPEN_BYTES, nonce, TG_TICKET_NONCE_BYTES);
    const struct tg_seal seal = inner_seal(outer, subkey);
    tg_seal(&seal, text, length, outer + OPEN_BYTES + TG_TICKET_NONCE_BYTES);
    if (subkey == &fresh) {
        keep_subkey(ring, &fresh);
    }
    return tg_base64url_encode(outer, OPEN_BYTES + TG_TICKET_NONCE_BYTES + length + TAG_BYTES,
                               out_text);
}

enum {
    KEYS = sizeof(((struct tg_key_ring *)0)->keys) / sizeof(((struct tg_key_ring *)0)->keys[0])
};

/* Which key has this id; KEYS when none has. */
static size_t find_key(const struct tg_key_ring *ring, uint8_t id)
{
    size_t which = 0;
    while (which < KEYS && (id == 0 || ring->keys[which].id != id)) {
        which++;
    }
    return which;
}

/* Opens version, key id, nonce and seal of outer. TG_ERR_FORGED when no key of ours fits. */
static int open_seal(const struct tg_key_ring *ring, const uint8_t *outer, size_t outer_length,
                     uint8_t *out_inner, size_t *out_length)
{
    struct tg_subkey fresh;
    const uint8_t *nonce = outer + OPEN_BYTES, *sealed = nonce + TG_TICKET_NONCE_BYTES;
    const size_t length = outer_length - OPEN_BYTES - TG_TICKET_NONCE_BYTES;
    const size_t which = find_key(ring, outer[1]);
    if (which == KEYS) {
        return TG_ERR_FORGED;
    }
    const struct tg_subkey *subkey = take_subkey(ring, which, nonce, &fresh);
    const struct tg_seal seal = inner_seal(outer, subkey);
    if (tg_unseal(&seal, sealed, length, out_inner) != 0) {
        sodium_memzero(&fresh, sizeof(fresh));
        return TG_ERR_FORGED;
    }
    if (subkey == &fresh) {
        keep_subkey(ring, &fresh);
    }
    *out_length = length - TAG_BYTES;
    return 0;
}

static bool holder_valid(const struct tg_holder *holder)
{
    switch (holder->kind) {
    case TG_HOLDER_USER:
        return tg_user_valid(holder->bytes, holder->length);
    case TG_HOLDER_VISITOR:
        return holder->length == VISITOR_BYTES;
    }
    return false;
}

/* Only we seal, but a field out of bounds is still refused, not asserted: it came from outside. */
static int read_inner(const uint8_t *inner, size_t length, struct tg_ticket *out_ticket)
{
    struct tg_ticket ticket = {0};
    if (length < FIXED_BYTES || inner[0] > TG_MAX_SALE_NAME_BYTES ||
        length < (size_t)FIXED_BYTES + inner[0]) {
        return TG_ERR_MALFORMED;
    }
    size_t sale_length = inner[0];
    memcpy(ticket.sale, inner + 1, sale_length);
    const uint8_t *at = inner + 1 + sale_length;
    ticket.generation = read_number(at);
    ticket.holder.kind = (enum tg_holder_kind)at[8];
    ticket.holder.length = at[9];
    at += 10;
    if (ticket.holder.length > TG_MAX_USER_BYTES ||
        length != FIXED_BYTES + sale_length + ticket.holder.length) {
        return TG_ERR_MALFORMED;
    }
    memcpy(ticket.holder.bytes, at, ticket.holder.length);
    at += ticket.holder.length;
    ticket.arrived.ms = (int64_t)read_number(at);
    ticket.index = read_number(at + 8);
    if ((at[16] & ~(EARLY | PROVED)) != 0 || at[17] > TG_LANE_DECOY || ticket.arrived.ms < 0 ||
        !holder_valid(&ticket.holder) || !tg_sale_name_valid(ticket.sale, sale_length)) {
        return TG_ERR_MALFORMED;
    }
    ticket.early = (at[16] & EARLY) != 0;
    ticket.proved = (at[16] & PROVED) != 0;
    ticket.lane = (enum tg_lane)at[17];
    *out_ticket = ticket;
    return 0;
}

int tg_ticket_open(const struct tg_key_ring *ring, const char *text, size_t length,
                   struct tg_ticket *out_ticket)
{
    uint8_t outer[OUTER_BYTES_MAX];
    uint8_t inner[INNER_BYTES_MAX];
    size_t outer_length = 0, inner_length = 0;
    if (length > TG_MAX_TICKET_BYTES ||
        tg_base64url_decode(text, length, outer, sizeof(outer), &outer_length) != 0 ||
        outer_length < OPEN_BYTES + TG_TICKET_NONCE_BYTES + TAG_BYTES + FIXED_BYTES ||
        outer[0] != VERSION) {
        return TG_ERR_MALFORMED;
    }
    int error = open_seal(ring, outer, outer_length, inner, &inner_length);
    return error != 0 ? error : read_inner(inner, inner_length, out_ticket);
}
