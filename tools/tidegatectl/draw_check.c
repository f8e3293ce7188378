/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/draw_check.h"

#include "lib/pure/rank.h"
#include "tools/tidegatectl/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, LINE_BYTES = TG_ENTRANT_LENGTH + 2, BEACON_HEX = 2 * TG_BEACON_BYTES };

struct roster {
    uint64_t count;
    char (*entrants)[TG_ENTRANT_LENGTH + 1]; /* heap */
    uint8_t root[TG_DRAW_BYTES];
};

struct place {
    uint64_t score;
    const char *entrant;
};

static bool refuse(const char *what, const char *why)
{
    (void)fprintf(stderr, "tidegatectl: %s: %s\n", what, why);
    return false;
}

static FILE *open_in(const char *folder, const char *name, const char *mode)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        (void)refuse(path, strerror(errno));
    }
    return file;
}

/* ---- draw.json ---- */

static bool read_hex(const json_t *root, const char *name, uint8_t *out_bytes, size_t length)
{
    const char *text = json_string_value(json_object_get(root, name));
    const char *hex = text != NULL && strncmp(text, "sha256:", 7) == 0 ? text + 7 : text;
    return hex != NULL && tg_hex_decode(hex, strlen(hex), out_bytes, length) == 0;
}

static bool read_number(const json_t *root, const char *name, uint64_t *out_number)
{
    const json_t *number = json_object_get(root, name);
    if (!json_is_integer(number) || json_integer_value(number) < 0) {
        return false;
    }
    *out_number = (uint64_t)json_integer_value(number);
    return true;
}

static bool read_beacon(const json_t *root, struct tg_draw *draw)
{
    const char *text = json_string_value(json_object_get(root, "beaconValue"));
    if (text == NULL || strlen(text) > BEACON_HEX) {
        return false;
    }
    draw->beacon_length = (uint8_t)(strlen(text) / 2);
    return tg_hex_decode(text, strlen(text), draw->beacon, draw->beacon_length) == 0;
}

static bool take_claim(const json_t *root, struct draw_claim *claim)
{
    struct tg_draw *draw = &claim->draw;
    const char *sale = json_string_value(json_object_get(root, "sale"));
    if (sale == NULL || !tg_sale_name_valid(sale, strlen(sale)) ||
        !read_number(root, "generation", &claim->generation) ||
        !read_number(root, "parts", &claim->parts) || !read_number(root, "count", &draw->count) ||
        !read_number(root, "indexAtOpen", &draw->index_at_open) ||
        !read_hex(root, "commitment", claim->commitment, TG_DRAW_BYTES) ||
        !read_beacon(root, draw) || claim->parts > TG_MAX_ROSTER_ENTRANTS) {
        return refuse("draw.json", "is not what /sale/SALE/draw.json gives");
    }
    memcpy(claim->sale, sale, strlen(sale) + 1);
    draw->frozen = read_hex(root, "root", draw->root, TG_DRAW_BYTES);
    draw->revealed = read_hex(root, "secret", draw->secret, TG_DRAW_BYTES) &&
                     read_hex(root, "seed", draw->seed, TG_DRAW_BYTES);
    if (!draw->frozen || !draw->revealed) {
        return refuse("draw.json", "nothing is drawn yet: the secret is told after the opening");
    }
    return true;
}

bool draw_claim_read(const char *folder, struct draw_claim *out_claim)
{
    json_error_t fault;
    FILE *file = open_in(folder, "draw.json", "re");
    if (file == NULL) {
        return false;
    }
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &fault);
    (void)fclose(file);
    *out_claim = (struct draw_claim){0};
    bool good = root != NULL ? take_claim(root, out_claim) : refuse("draw.json", fault.text);
    json_decref(root);
    return good;
}

/* ---- the roster ---- */

/* One line; false at the end and when it is no entrant. */
static bool read_line(FILE *file, char out_line[LINE_BYTES])
{
    uint8_t entrant[TG_ENTRANT_BYTES];
    if (fgets(out_line, LINE_BYTES, file) == NULL || out_line[TG_ENTRANT_LENGTH] != '\n') {
        return false;
    }
    out_line[TG_ENTRANT_LENGTH] = '\0';
    return tg_base32_id_decode(out_line, TG_ENTRANT_LENGTH, entrant) == 0;
}

/* Every line an entrant, in order and once, as many as claimed. */
static bool read_lines(FILE *file, const struct draw_claim *claim, struct roster *roster)
{
    struct tg_merkle merkle;
    char line[LINE_BYTES];
    tg_merkle_begin(&merkle);
    while (roster->count < claim->draw.count && read_line(file, line)) {
        memcpy(roster->entrants[roster->count], line, sizeof(roster->entrants[0]));
        if (roster->count > 0 && strcmp(roster->entrants[roster->count - 1], line) >= 0) {
            return refuse("roster", "is not sorted, or names an entrant twice");
        }
        tg_merkle_add(&merkle, line, TG_ENTRANT_LENGTH);
        roster->count++;
    }
    if (roster->count != claim->draw.count || fgetc(file) != EOF) {
        return refuse("roster", "does not have as many entrants as draw.json says, one a line");
    }
    tg_merkle_root(&merkle, roster->root);
    return true;
}

static bool read_roster(const char *folder, const struct draw_claim *claim, struct roster *roster)
{
    FILE *file = open_in(folder, "roster", "re");
    if (file == NULL) {
        return false;
    }
    bool good = claim->draw.count <= TG_MAX_ROSTER_ENTRANTS;
    if (good) {
        roster->entrants = calloc(claim->draw.count + 1, sizeof(roster->entrants[0]));
    }
    good = roster->entrants != NULL && read_lines(file, claim, roster);
    (void)fclose(file);
    return good;
}

/* ---- the rule ---- */

static bool check_rule(const struct draw_claim *claim, const struct roster *roster)
{
    uint8_t commitment[TG_DRAW_BYTES];
    struct tg_draw again = claim->draw;
    tg_draw_commit(claim->draw.secret, commitment);
    if (memcmp(commitment, claim->commitment, sizeof(commitment)) != 0) {
        return refuse("secret", "is not the one that was promised (commitment)");
    }
    if (memcmp(roster->root, claim->draw.root, sizeof(roster->root)) != 0) {
        return refuse("roster", "is not the one that was frozen (root)");
    }
    tg_draw_mix(&again);
    if (memcmp(again.seed, claim->draw.seed, sizeof(again.seed)) != 0) {
        return refuse("seed", "does not follow from secret, beacon and root");
    }
    return true;
}

static uint64_t rank_of(const struct draw_claim *claim, const char *entrant)
{
    struct tg_board_view board = {
        .random = true, .revealed = true, .present_at_open = claim->draw.count};
    uint64_t rank = 0;
    memcpy(board.seed, claim->draw.seed, sizeof(board.seed));
    return tg_rank(&board, 0, true, entrant, &rank) ? rank : 0;
}

static int by_score(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->score != b->score) {
        return a->score < b->score ? -1 : 1;
    }
    return strcmp(a->entrant, b->entrant);
}

static bool write_order(const char *path, const struct draw_claim *claim,
                        const struct roster *roster)
{
    struct place *places = calloc(roster->count + 1, sizeof(*places));
    FILE *file = fopen(path, "we");
    if (places == NULL || file == NULL) {
        free(places);
        return refuse(path, strerror(errno));
    }
    for (uint64_t i = 0; i < roster->count; i++) {
        places[i].entrant = roster->entrants[i];
        places[i].score = tg_score(claim->draw.seed, roster->entrants[i]);
    }
    qsort(places, roster->count, sizeof(*places), by_score);
    for (uint64_t i = 0; i < roster->count; i++) {
        (void)fprintf(file, "%" PRIu64 " %s\n", rank_of(claim, places[i].entrant),
                      places[i].entrant);
    }
    free(places);
    return fclose(file) == 0 || refuse(path, strerror(errno));
}

static int by_name(const void *left, const void *right)
{
    return strcmp(left, right);
}

static bool report(const struct draw_wish *wish, const struct draw_claim *claim,
                   const struct roster *roster)
{
    char root[2 * TG_DRAW_BYTES + 1], seed[2 * TG_DRAW_BYTES + 1];
    tg_hex_encode(claim->draw.root, TG_DRAW_BYTES, root);
    tg_hex_encode(claim->draw.seed, TG_DRAW_BYTES, seed);
    if (wish->entrant != NULL && bsearch(wish->entrant, roster->entrants, roster->count,
                                         sizeof(roster->entrants[0]), by_name) == NULL) {
        return refuse(wish->entrant, "is not in the roster");
    }
    if (wish->format != CTL_TABLE) {
        json_t *document =
            json_pack("{s:s, s:I, s:I, s:s, s:s, s:b}", "sale", claim->sale, "generation",
                      (json_int_t)claim->generation, "entrants", (json_int_t)roster->count, "root",
                      root, "seed", seed, "beacon", claim->draw.beacon_length > 0);
        if (wish->entrant != NULL) {
            (void)json_object_set_new(document, "rank",
                                      json_integer((json_int_t)rank_of(claim, wish->entrant)));
        }
        ctl_print_document(wish->format, document);
        return true;
    }
    (void)printf("the draw of %s, generation %" PRIu64 ", holds: %" PRIu64
                 " entrants, root %.16s..., seed %.16s..., %s\n",
                 claim->sale, claim->generation, roster->count, root, seed,
                 claim->draw.beacon_length > 0 ? "with beacon" : "commit-reveal only");
    if (wish->entrant != NULL) {
        (void)printf("%s has rank %" PRIu64 "\n", wish->entrant, rank_of(claim, wish->entrant));
    }
    return true;
}

bool draw_check(const char *folder, const struct draw_wish *wish)
{
    struct draw_claim claim;
    struct roster roster = {0};
    bool good = draw_claim_read(folder, &claim) && read_roster(folder, &claim, &roster) &&
                check_rule(&claim, &roster) && report(wish, &claim, &roster) &&
                (wish->order_file == NULL || write_order(wish->order_file, &claim, &roster));
    free(roster.entrants);
    return good;
}
