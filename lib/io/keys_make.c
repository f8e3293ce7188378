/* SPDX-License-Identifier: Apache-2.0
 * Makes keys: all of a deployment, the secret of a draw, and the steps of a rotation. */
#include "lib/io/es256.h"
#include "lib/io/keys_inner.h"
#include "lib/io/now.h"
#include "lib/pure/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREDENTIAL_BYTES = 32 };

/* Every file tg_keys_new makes. */
enum made_kind { MADE_SECRET, MADE_RING, MADE_SIGN, MADE_SERVICE, MADE_NKEY, MADE_ES256 };

static const struct {
    const char *name;
    enum made_kind kind;
} made[] = {
    {"ticket.current", MADE_RING},      {"pass.current", MADE_SIGN},      {"pass-mac", MADE_SECRET},
    {"pass-es256.current", MADE_ES256}, {"reservation", MADE_SECRET},     {"entrant", MADE_SECRET},
    {"control-operator", MADE_SIGN},    {"control-invariant", MADE_SIGN}, {"buyer", MADE_SECRET},
    {"service", MADE_SERVICE},
#define TG_IDENTITY(name, class, what) {"nats-" name, MADE_NKEY},
#include "catalog/identities.def"
#undef TG_IDENTITY
};

enum { MADE_COUNT = sizeof(made) / sizeof(made[0]) };

static int write_file(const char *folder, const char *name, const char *suffix, mode_t mode,
                      const char *line)
{
    char path[PATH_MAX];
    int error = keys_path(folder, name, suffix, path);
    if (error != 0) {
        return error;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        error = -errno;
        return keys_complain(path, strerror(-error), error);
    }
    size_t length = strlen(line);
    ssize_t written = write(fd, line, length);
    error = written == (ssize_t)length && fsync(fd) == 0 ? 0 : -EIO;
    if (close(fd) != 0 || error != 0) {
        return keys_complain(path, "could not be written", -EIO);
    }
    return 0;
}

/* "ID HEX\n" of `shown`, the ID derived from `named`. */
static int write_key(const char *folder, const char *name, const char *suffix,
                     const uint8_t shown[TG_KEY_BYTES], const uint8_t named[TG_KEY_BYTES])
{
    char line[KEYS_LINE_BYTES];
    char hex[2 * TG_KEY_BYTES + 1];
    char id[KEYS_ID_LENGTH + 1];
    keys_id(named, id);
    tg_hex_encode(shown, TG_KEY_BYTES, hex);
    snprintf(line, sizeof(line), "%s %s\n", id, hex);
    mode_t mode = suffix[0] != '\0' ? 0644 : 0600;
    int error = write_file(folder, name, suffix, mode, line);
    sodium_memzero(line, sizeof(line));
    sodium_memzero(hex, sizeof(hex));
    return error;
}

static int make_service(const char *folder, const char *name)
{
    uint8_t random[CREDENTIAL_BYTES];
    char text[TG_BASE64URL_LENGTH(CREDENTIAL_BYTES) + 1];
    uint8_t hash[TG_KEY_BYTES];
    char id[KEYS_ID_LENGTH + 1];
    char line[KEYS_LINE_BYTES];
    tg_random(random, sizeof(random));
    size_t length = tg_base64url_encode(random, sizeof(random), text);
    tg_keys_service_hash(text, length, hash);
    keys_id(hash, id);
    snprintf(line, sizeof(line), "%s %s\n", id, text);
    int error = write_file(folder, name, "", 0600, line);
    if (error == 0) {
        error = write_key(folder, name, ".hash", hash, hash);
    }
    sodium_memzero(random, sizeof(random));
    sodium_memzero(text, sizeof(text));
    sodium_memzero(line, sizeof(line));
    return error;
}

static int make_sign(const char *folder, const char *name)
{
    uint8_t seed[TG_KEY_BYTES];
    uint8_t public_key[32];
    uint8_t secret[64];
    tg_random(seed, sizeof(seed));
    crypto_sign_seed_keypair(public_key, secret, seed);
    int error = write_key(folder, name, "", seed, public_key);
    if (error == 0) {
        error = write_key(folder, name, ".pub", public_key, public_key);
    }
    sodium_memzero(seed, sizeof(seed));
    sodium_memzero(secret, sizeof(secret));
    return error;
}

static int make_secret(const char *folder, const char *name, bool for_ring)
{
    uint8_t key[TG_KEY_BYTES];
    do {
        tg_random(key, sizeof(key));
    } while (for_ring && keys_ring_id(key) == 0); /* 0 means absent in a ring */
    int error = write_key(folder, name, "", key, key);
    sodium_memzero(key, sizeof(key));
    return error;
}

static int write_text(const char *folder, const char *name, const char *suffix, const char *text)
{
    char line[KEYS_LINE_BYTES];
    (void)snprintf(line, sizeof(line), "%s\n", text);
    int error = write_file(folder, name, suffix, suffix[0] != '\0' ? 0644 : 0600, line);
    sodium_memzero(line, sizeof(line));
    return error;
}

static int make_nkey(const char *folder, const char *name)
{
    uint8_t seed[TG_NKEY_BYTES], public_key[TG_NKEY_BYTES], secret[64];
    char seed_text[TG_NKEY_SEED_LENGTH + 1], public_text[TG_NKEY_PUBLIC_LENGTH + 1];
    tg_random(seed, sizeof(seed));
    crypto_sign_seed_keypair(public_key, secret, seed);
    tg_nkey_seed_encode(seed, seed_text);
    tg_nkey_public_encode(public_key, public_text);
    int error = write_text(folder, name, "", seed_text);
    if (error == 0) {
        error = write_text(folder, name, ".pub", public_text);
    }
    sodium_memzero(seed, sizeof(seed));
    sodium_memzero(secret, sizeof(secret));
    sodium_memzero(seed_text, sizeof(seed_text));
    return error;
}

/* The public part is an x: lib/io/es256. */
static int make_es256(const char *folder, const char *name)
{
    uint8_t secret[TG_ES256_KEY_BYTES], x[TG_ES256_KEY_BYTES];
    int error = tg_es256_make(secret, x);
    if (error == 0) {
        error = write_key(folder, name, "", secret, secret);
    }
    if (error == 0) {
        error = write_key(folder, name, ".pub", x, x);
    }
    sodium_memzero(secret, sizeof(secret));
    return error;
}

static int make_one(const char *folder, const char *name, enum made_kind kind)
{
    switch (kind) {
    case MADE_SECRET:
        return make_secret(folder, name, false);
    case MADE_RING:
        return make_secret(folder, name, true);
    case MADE_SIGN:
        return make_sign(folder, name);
    case MADE_SERVICE:
        return make_service(folder, name);
    case MADE_NKEY:
        return make_nkey(folder, name);
    case MADE_ES256:
        return make_es256(folder, name);
    }
    return -EINVAL;
}

/* Before anything is written: a folder with one old key in it keeps all of its keys. */
static int refuse_to_overwrite(const char *folder)
{
    static const char *const endings[] = {"", ".pub", ".hash"};
    for (size_t i = 0; i < MADE_COUNT; i++) {
        for (size_t j = 0; j < sizeof(endings) / sizeof(endings[0]); j++) {
            char path[PATH_MAX];
            int error = keys_path(folder, made[i].name, endings[j], path);
            if (error != 0) {
                return error;
            }
            if (access(path, F_OK) == 0) {
                return keys_complain(path, "is there already; nothing was written", -EEXIST);
            }
        }
    }
    return 0;
}

int tg_keys_new(const char *folder)
{
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        int error = -errno;
        return keys_complain(folder, strerror(-error), error);
    }
    int error = refuse_to_overwrite(folder);
    for (size_t i = 0; i < MADE_COUNT && error == 0; i++) {
        error = make_one(folder, made[i].name, made[i].kind);
    }
    return error;
}

int tg_keys_draw_new(const char *folder, const char *sale, uint8_t out_secret[TG_KEY_BYTES])
{
    char name[sizeof("draw-") + TG_MAX_SALE_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "draw-%s", sale);
    tg_random(out_secret, TG_KEY_BYTES);
    return write_key(folder, name, "", out_secret, out_secret);
}

/* ---- rotation ---- */

static const char *const parts[] = {"", ".pub"};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* The row of a name that rotates: "ticket" is "ticket.current" there. -1: no such. */
static int made_index(const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < MADE_COUNT; i++) {
        bool rotates = made[i].kind != MADE_SECRET && made[i].kind != MADE_SERVICE;
        if (rotates && strncmp(made[i].name, name, length) == 0 &&
            (made[i].name[length] == '\0' || strcmp(made[i].name + length, ".current") == 0)) {
            return i;
        }
    }
    return -1;
}

bool tg_keys_rotates(const char *name)
{
    return made_index(name) >= 0;
}

static bool is_there(const char *folder, const char *name, const char *age, const char *part,
                     char out_path[PATH_MAX])
{
    char ending[32];
    (void)snprintf(ending, sizeof(ending), "%s%s", age, part);
    return keys_path(folder, name, ending, out_path) == 0 && access(out_path, F_OK) == 0;
}

/* A ticket key must not share the first byte of its ID with its neighbours. */
static int make_next_ring(const char *folder, const char *name, const char *next)
{
    struct tg_key_ring ring;
    char path[PATH_MAX];
    int error;
    do {
        error = make_secret(folder, next, true);
        if (error != 0) {
            return error;
        }
        error = tg_keys_ring(folder, name, &ring);
        if (error != 0 && (!is_there(folder, next, "", "", path) || unlink(path) != 0)) {
            return error;
        }
    } while (error == TG_ERR_MALFORMED);
    sodium_memzero(&ring, sizeof(ring));
    return error;
}

static int prepare(const char *folder, const char *name, enum made_kind kind, bool dry_run)
{
    char next[64], path[PATH_MAX];
    if (is_there(folder, name, ".previous", "", path) ||
        is_there(folder, name, ".next", "", path)) {
        return keys_complain(
            path, "is there already: finish that rotation first (keys promote, then retire)",
            -EEXIST);
    }
    if (dry_run) {
        return 0;
    }
    (void)snprintf(next, sizeof(next), "%s.next", name);
    /* Left by a step that was cut off before its secret was there. */
    if (is_there(folder, name, ".next", ".pub", path) && unlink(path) != 0) {
        return -errno;
    }
    return kind == MADE_RING ? make_next_ring(folder, name, next) : make_one(folder, next, kind);
}

/* The present key stays in its place until the next takes it, in one step of the file system. */
static int promote_part(const char *folder, const char *name, const char *part)
{
    char current[PATH_MAX], previous[PATH_MAX], next[PATH_MAX];
    const char *age = keys_current(folder, name, part);
    if (!is_there(folder, name, ".next", part, next)) {
        return 0; /* an earlier attempt came as far, or there is no such part */
    }
    if (!is_there(folder, name, age, part, current)) {
        return keys_complain(current, "is missing", -ENOENT);
    }
    if (!is_there(folder, name, ".previous", part, previous) && link(current, previous) != 0) {
        return keys_complain(previous, strerror(errno), -errno);
    }
    return rename(next, current) == 0 ? 0 : keys_complain(current, strerror(errno), -errno);
}

static int promote(const char *folder, const char *name, bool dry_run)
{
    char path[PATH_MAX];
    if (!is_there(folder, name, ".next", "", path)) {
        return keys_complain(path, "is not there: prepare first", -ENOENT);
    }
    /* Public parts first: who signs with a key does so only when all may know it. */
    for (size_t i = PARTS; i > 0 && !dry_run; i--) {
        int error = promote_part(folder, name, parts[i - 1]);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static int retire(const char *folder, const char *name, bool dry_run)
{
    char path[PATH_MAX];
    if (!is_there(folder, name, ".previous", "", path)) {
        return keys_complain(path, "is not there: nothing to retire", -ENOENT);
    }
    for (size_t i = PARTS; i > 0 && !dry_run; i--) {
        if (is_there(folder, name, ".previous", parts[i - 1], path) && unlink(path) != 0) {
            return keys_complain(path, strerror(errno), -errno);
        }
    }
    return 0;
}

int tg_keys_rotate(const char *folder, const char *name, enum tg_keys_step step, bool dry_run)
{
    int row = made_index(name);
    if (row < 0) {
        return keys_complain(name, "is no key that rotates", -EINVAL);
    }
    switch (step) {
    case TG_KEYS_PREPARE:
        return prepare(folder, name, made[row].kind, dry_run);
    case TG_KEYS_PROMOTE:
        return promote(folder, name, dry_run);
    case TG_KEYS_RETIRE:
        return retire(folder, name, dry_run);
    }
    return -EINVAL;
}
