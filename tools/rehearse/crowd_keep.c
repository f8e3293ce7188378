/* SPDX-License-Identifier: Apache-2.0
 * Tickets of everybody, kept until the end: packed into large chunks, named by 32 bits each. The
 * entrant comes first: where it is, is known without reading it. */
#include "tools/rehearse/crowd.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT_BYTES = 8, CHUNK_UNITS = 1 << 17 /* 1 MiB */ };

static void add_chunk(struct rehearse_tickets *tickets)
{
    char **chunks = realloc(tickets->chunks, (tickets->chunk_count + 1) * sizeof(*chunks));
    char *chunk = malloc((size_t)CHUNK_UNITS * UNIT_BYTES);
    if (chunks == NULL || chunk == NULL) {
        abort();
    }
    tickets->chunks = chunks;
    tickets->chunks[tickets->chunk_count++] = chunk;
    /* Unit 0 of chunk 0 is no ticket: 0 means none. */
    tickets->used = tickets->chunk_count == 1 ? 1 : 0;
}

uint32_t rehearse_tickets_keep(struct rehearse_tickets *tickets, const char *token,
                               const char *entrant)
{
    size_t entrant_bytes = strlen(entrant) + 1;
    size_t bytes = entrant_bytes + strlen(token) + 1;
    uint32_t units = (uint32_t)((bytes + UNIT_BYTES - 1) / UNIT_BYTES);
    if (tickets->chunk_count == 0 || tickets->used + units > CHUNK_UNITS) {
        add_chunk(tickets);
    }
    char *place = tickets->chunks[tickets->chunk_count - 1] + (size_t)tickets->used * UNIT_BYTES;
    memcpy(place, entrant, entrant_bytes);
    memcpy(place + entrant_bytes, token, bytes - entrant_bytes);
    uint32_t ticket = (tickets->chunk_count - 1) * CHUNK_UNITS + tickets->used;
    tickets->used += units;
    return ticket;
}

const char *rehearse_tickets_entrant(const struct rehearse_tickets *tickets, uint32_t ticket)
{
    return tickets->chunks[ticket / CHUNK_UNITS] + (size_t)(ticket % CHUNK_UNITS) * UNIT_BYTES;
}

const char *rehearse_tickets_token(const struct rehearse_tickets *tickets, uint32_t ticket)
{
    const char *entrant = rehearse_tickets_entrant(tickets, ticket);
    return entrant + strlen(entrant) + 1;
}

void rehearse_tickets_clear(struct rehearse_tickets *tickets)
{
    for (uint32_t i = 0; i < tickets->chunk_count; i++) {
        free(tickets->chunks[i]);
    }
    free(tickets->chunks);
    *tickets = (struct rehearse_tickets){0};
}
