/* SPDX-License-Identifier: Apache-2.0
 * The draw that orders those who came before the opening: commitment to a secret, Merkle root of
 * the roster, seed. Everybody can compute all of it again: docs/draw.md is the rule, tidegatectl
 * draw verify and the script there are two more implementations. Pure; the roster's memory is the
 * caller's. */
#ifndef TG_PURE_DRAW_H
#define TG_PURE_DRAW_H

#include "lib/pure/identity.h"

enum {
    TG_DRAW_BYTES = 32,    /* secret, commitment, root, seed */
    TG_ENTRANT_BYTES = 16, /* an entrant before it is spelled (tg_base32_id_encode) */
    TG_BEACON_BYTES = 32,  /* longest value of a public beacon; of a longer one its SHA-256 */
    /* Longest run of neighbours in a roster's table: entrants are MACs, so at half load a run of
       this length does not occur; who could make one is no edge of ours. */
    TG_ROSTER_RUN_MAX = 1024
};

/* What was drawn, as the ledger keeps it. Frozen before revealed, each once per generation. */
struct tg_draw {
    bool frozen;            /* count, index_at_open and root are final */
    bool revealed;          /* secret, beacon and seed are known */
    uint64_t count;         /* entrants in the roster */
    uint64_t index_at_open; /* later arrivals follow in the order of their indexes from here on */
    uint8_t root[TG_DRAW_BYTES];
    uint8_t secret[TG_DRAW_BYTES];
    uint8_t beacon_length; /* 0: none, commit and reveal only */
    uint8_t beacon[TG_BEACON_BYTES];
    uint8_t seed[TG_DRAW_BYTES];
};

/* commitment = SHA-256(secret). */
void tg_draw_commit(const uint8_t secret[TG_DRAW_BYTES], uint8_t out_commitment[TG_DRAW_BYTES]);

/* Fills draw->seed: SHA-256 over secret, beacon and root, each behind its length as 8 bytes
 * little-endian. */
void tg_draw_mix(struct tg_draw *draw);

/* Merkle tree hash of a list, RFC 6962 section 2.1 with SHA-256; leaves are added in order. */
struct tg_merkle {
    uint64_t count;
    uint8_t stack[64][TG_DRAW_BYTES]; /* roots of the full subtrees so far */
};
void tg_merkle_begin(struct tg_merkle *merkle);
void tg_merkle_add(struct tg_merkle *merkle, const void *leaf, size_t length);
void tg_merkle_root(const struct tg_merkle *merkle, uint8_t out_root[TG_DRAW_BYTES]);

/* A set of entrants that is always in order: a hash table by the leading bits, so that reading it
 * from its start to its end is reading it sorted. */
struct tg_roster {
    uint8_t (*slots)[TG_ENTRANT_BYTES]; /* all zero = empty; borrowed */
    unsigned bits;                      /* 2^bits places, and TG_ROSTER_RUN_MAX behind them */
    uint64_t count;
};

/* Bytes of the table of a roster of at most 2^(bits - 1) entrants; 8 <= bits <= 32. */
static inline size_t tg_roster_table_bytes(unsigned bits)
{
    return (((size_t)1 << bits) + TG_ROSTER_RUN_MAX) * TG_ENTRANT_BYTES;
}

/* An empty roster in `slots`, zeroed, of tg_roster_table_bytes(bits). */
void tg_roster_begin(struct tg_roster *roster, void *slots, unsigned bits);

/* At half load: a larger table is due before the next one is added (tg_roster_move). */
static inline bool tg_roster_crowded(const struct tg_roster *roster)
{
    return roster->count >= (uint64_t)1 << (roster->bits - 1);
}

/* 1: added; 0: it was there already; TG_ERR_FULL: crowded, or a run is too long; TG_ERR_MALFORMED:
 * all zero. */
TG_MUST_CHECK int tg_roster_add(struct tg_roster *roster, const uint8_t entrant[TG_ENTRANT_BYTES]);

/* Puts all of `from` into the empty `roster`. 0 or TG_ERR_FULL. */
TG_MUST_CHECK int tg_roster_move(struct tg_roster *roster, const struct tg_roster *from);

/* Closing a roster: in slices, so that a loop is not held up. What is closed lies without gaps at
 * the start of the slots, sorted, and is never added to. */
struct tg_roster_close {
    uint64_t at;     /* next slot to read */
    uint64_t closed; /* entrants so far */
    struct tg_merkle merkle;
};
void tg_roster_close_begin(struct tg_roster_close *closing);
/* Reads at most `slots` more; true when all are read. Leaves are the entrants as spelled. */
bool tg_roster_close_step(struct tg_roster *roster, struct tg_roster_close *closing,
                          uint64_t slots);

#endif
