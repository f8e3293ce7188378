/* SPDX-License-Identifier: Apache-2.0
 * Makes keys: all of a deployment, the secret of a draw, and the steps of a rotation. */
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
enum made_kind { MADE_SECRET, MADE_RING, MADE_SIGN, MADE_SERVICE, MADE_NKEY };

static const struct {
    const char *name;
    enum made_kind kind;
} made[] = {
    {"ticket.current", MADE_RING},    {"pass.current", MADE_SIGN}, {"pass-mac", MADE_SECRET},
    {"reservation", MADE_SECRET},     {"entrant", MADE_SECRET},    {"control-operator", MADE_SIGN},
    {"control-invariant", MADE_SIGN}, {"buyer", MADE_SECRET},      {"service", MADE_SERVICE},
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
