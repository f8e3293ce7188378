/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/keys_inner.h"

#include "lib/io/now.h"
#include "lib/pure/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A key file as read: "ID REST". */
struct key_file {
    char path[PATH_MAX];
    char line[KEYS_LINE_BYTES];
    const char *id;
    const char *rest;
};

int keys_complain(const char *path, const char *fault, int error)
{
    fprintf(stderr, "key file %s: %s\n", path, fault);
    return error;
}

/* The 8 hex characters of a key's ID: a digest with its own domain, so that an ID tells nothing
 * about a secret. */
void keys_id(const uint8_t key[TG_KEY_BYTES], char out_id[KEYS_ID_LENGTH + 1])
{
    struct tg_mac mac;
    uint8_t digest[16];
    tg_mac_begin(&mac, NULL, "tidegate key id");
    tg_mac_field(&mac, key, TG_KEY_BYTES);
    tg_mac_end(&mac, digest, sizeof(digest));
    tg_hex_encode(digest, KEYS_ID_LENGTH / 2, out_id);
}

int keys_path(const char *folder, const char *name, const char *suffix, char out_path[PATH_MAX])
{
    int length = snprintf(out_path, PATH_MAX, "%s/%s%s", folder, name, suffix);
    if (length < 0 || length >= PATH_MAX) {
        fprintf(stderr, "key folder: its path is too long\n");
        return -ENAMETOOLONG;
    }
    return 0;
}

static int read_line(struct key_file *file, size_t *out_length)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return -EINVAL;
    }
    bool exposed = (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
    bool is_public = strstr(file->path, ".pub") != NULL || strstr(file->path, ".hash") != NULL;
    ssize_t length = read(fd, file->line, sizeof(file->line) - 1);
    int error = length < 0 ? -errno : 0;
    close(fd);
    if (error != 0) {
        return error;
    }
    if (exposed && !is_public) {
        fprintf(stderr,
                "key file %s: warning: readable by more than its owner; make it mode 0600\n",
                file->path);
    }
    file->line[length] = '\0';
    *out_length = (size_t)length;
    return 0;
}

/* Reads and splits. -ENOENT is told in words only when the file is required. */
static int read_file(struct key_file *file, bool required)
{
    size_t length = 0;
    int error = read_line(file, &length);
    if (error == -ENOENT && !required) {
        return error;
    }
    if (error != 0) {
        return keys_complain(file->path, strerror(-error), error);
    }
    size_t line_length = strcspn(file->line, "\n");
    bool one_line = strlen(file->line) == length && line_length + 1 == length;
    if (!one_line || line_length <= KEYS_ID_LENGTH + 1 || file->line[KEYS_ID_LENGTH] != ' ') {
        sodium_memzero(file->line, sizeof(file->line));
        return keys_complain(file->path, "is not one line \"ID HEX\"", TG_ERR_MALFORMED);
    }
    file->line[line_length] = '\0';
    file->line[KEYS_ID_LENGTH] = '\0';
    file->id = file->line;
    file->rest = file->line + KEYS_ID_LENGTH + 1;
    return 0;
}

static int check_id(const struct key_file *file, const uint8_t key[TG_KEY_BYTES])
{
    char id[KEYS_ID_LENGTH + 1];
    keys_id(key, id);
    return strcmp(id, file->id) == 0
               ? 0
               : keys_complain(file->path, "its ID does not belong to its key", TG_ERR_MALFORMED);
}

/* The 32 bytes of a file, not yet compared with its ID. */
static int read_bytes(struct key_file *file, bool required, uint8_t out_key[TG_KEY_BYTES])
{
    int error = read_file(file, required);
    if (error != 0) {
        return error;
    }
    if (tg_hex_decode(file->rest, strlen(file->rest), out_key, TG_KEY_BYTES) != 0) {
        return keys_complain(file->path, "its key is not 64 lower-case hex characters",
                             TG_ERR_MALFORMED);
    }
    return 0;
}

/* Reads 32 bytes whose ID is derived from themselves: secrets and public keys. */
static int read_key(const char *folder, const char *name, const char *suffix, bool required,
                    uint8_t out_key[TG_KEY_BYTES])
{
    struct key_file file;
    uint8_t key[TG_KEY_BYTES];
    int error = keys_path(folder, name, suffix, file.path);
    if (error == 0) {
        error = read_bytes(&file, required, key);
    }
    if (error == 0) {
        error = check_id(&file, key);
    }
    if (error == 0) {
        memcpy(out_key, key, sizeof(key));
    }
    sodium_memzero(&file, sizeof(file));
    sodium_memzero(key, sizeof(key));
    return error;
}

int tg_keys_secret(const char *folder, const char *name, uint8_t out_key[TG_KEY_BYTES])
{
    return read_key(folder, name, "", true, out_key);
}

uint8_t keys_ring_id(const uint8_t key[TG_KEY_BYTES])
{
    char id[KEYS_ID_LENGTH + 1];
    uint8_t byte = 0;
    keys_id(key, id);
    int error = tg_hex_decode(id, 2, &byte, 1);
    return error == 0 ? byte : 0;
}

/* Ring ids must differ and not be 0, or a ticket could be opened with the wrong key. */
static int check_ring(const char *folder, const char *name, const struct tg_key_ring *ring,
                      const bool present[3])
{
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < i; j++) {
            if (present[i] && present[j] && ring->keys[i].id == ring->keys[j].id) {
                fprintf(stderr,
                        "key files %s/%s.*: two keys share the ID's first byte; make another\n",
                        folder, name);
                return TG_ERR_MALFORMED;
            }
        }
        if (present[i] && ring->keys[i].id == 0) {
            fprintf(stderr, "key files %s/%s.*: an ID begins with 00; make another key\n", folder,
                    name);
            return TG_ERR_MALFORMED;
        }
    }
    return 0;
}

static const char *const suffixes[3] = {".current", ".previous", ".next"};

int tg_keys_ring(const char *folder, const char *name, struct tg_key_ring *out_ring)
{
    struct tg_key_ring ring = {0};
    bool present[3] = {false, false, false};
    int error = 0;
    for (size_t i = 0; i < 3 && error == 0; i++) {
        error = read_key(folder, name, suffixes[i], i == 0, ring.keys[i].key);
        present[i] = error == 0;
        if (present[i]) {
            ring.keys[i].id = keys_ring_id(ring.keys[i].key);
        } else if (error == -ENOENT && i > 0) {
            error = 0;
        }
    }
    if (error == 0) {
        error = check_ring(folder, name, &ring, present);
    }
    if (error == 0) {
        *out_ring = ring;
    }
    sodium_memzero(&ring, sizeof(ring));
    return error;
}

/* NAME where the name is not rotated, else NAME.current. */
const char *keys_current(const char *folder, const char *name, const char *ending)
{
    char path[PATH_MAX];
    if (keys_path(folder, name, ending, path) == 0 && access(path, F_OK) == 0) {
        return "";
    }
    return ".current";
}

int tg_keys_sign(const char *folder, const char *name, struct tg_sign_key *out_key)
{
    struct key_file file;
    struct tg_sign_key key = {0};
    uint8_t seed[TG_KEY_BYTES];
    int error = keys_path(folder, name, keys_current(folder, name, ""), file.path);
    if (error == 0) {
        error = read_bytes(&file, true, seed);
    }
    if (error == 0) {
        crypto_sign_seed_keypair(key.public_key, key.secret, seed);
        error = check_id(&file, key.public_key);
    }
    if (error == 0) {
        memcpy(key.id, file.id, KEYS_ID_LENGTH + 1);
        *out_key = key;
    }
    sodium_memzero(&file, sizeof(file));
    sodium_memzero(&key, sizeof(key));
    sodium_memzero(seed, sizeof(seed));
    return error;
}

static int read_public(const char *folder, const char *name, const char *suffix, bool required,
                       struct tg_verify_key *out_key)
{
    char full[64];
    int length = snprintf(full, sizeof(full), "%s.pub", suffix);
    if (length < 0 || (size_t)length >= sizeof(full)) {
        return -ENAMETOOLONG;
    }
    struct tg_verify_key key = {0};
    int error = read_key(folder, name, full, required, key.public_key);
    if (error == 0) {
        keys_id(key.public_key, key.id);
        *out_key = key;
    }
    return error;
}

int tg_keys_verify(const char *folder, const char *name, struct tg_verify_key out_keys[3],
                   size_t *out_count)
{
    struct tg_verify_key keys[3];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        const char *suffix = i == 0 ? keys_current(folder, name, ".pub") : suffixes[i];
        int error = read_public(folder, name, suffix, i == 0, &keys[count]);
        if (error == 0) {
            count++;
        } else if (error != -ENOENT || i == 0) {
            return error;
        }
    }
    memcpy(out_keys, keys, count * sizeof(keys[0]));
    *out_count = count;
    return 0;
}

int tg_keys_public(const char *folder, const char *name, struct tg_verify_key *out_key)
{
    return read_public(folder, name, keys_current(folder, name, ".pub"), true, out_key);
}

int tg_keys_text(const char *folder, const char *name, char *out_text, size_t capacity)
{
    struct key_file file;
    int error = keys_path(folder, name, "", file.path);
    if (error == 0) {
        error = read_file(&file, true);
    }
    if (error == 0) {
        size_t length = strlen(file.rest);
        uint8_t hash[TG_KEY_BYTES];
        tg_keys_service_hash(file.rest, length, hash);
        error = check_id(&file, hash);
        if (error == 0 && length >= capacity) {
            error = keys_complain(file.path, "its text is too long", TG_ERR_RANGE);
        }
        if (error == 0) {
            memcpy(out_text, file.rest, length + 1);
        }
    }
    sodium_memzero(&file, sizeof(file));
    return error;
}

void tg_keys_service_hash(const char *text, size_t length, uint8_t out_hash[TG_KEY_BYTES])
{
    crypto_generichash(out_hash, TG_KEY_BYTES, (const uint8_t *)text, length, NULL, 0);
}

/* One line as NATS's own tools write it, without an ID: the spelling has a checksum. */
static int read_nkey_line(struct key_file *file, const char *folder, const char *name,
                          const char *suffix)
{
    size_t length = 0;
    int error = keys_path(folder, name, suffix, file->path);
    if (error == 0) {
        error = read_line(file, &length);
    }
    if (error == 0) {
        file->line[strcspn(file->line, "\n")] = '\0';
    }
    return error;
}

int tg_keys_nkey(const char *folder, const char *name, struct tg_sign_key *out_key)
{
    struct key_file file;
    struct tg_sign_key key = {0};
    uint8_t seed[TG_NKEY_BYTES];
    int error = read_nkey_line(&file, folder, name, "");
    if (error != 0) {
        error = keys_complain(file.path, strerror(-error), error);
    } else if (tg_nkey_seed_decode(file.line, strlen(file.line), seed) != 0) {
        error = keys_complain(file.path, "is not the seed of a user's NKey, one line \"SU…\"",
                              TG_ERR_MALFORMED);
    } else {
        crypto_sign_seed_keypair(key.public_key, key.secret, seed);
        *out_key = key;
    }
    sodium_memzero(&file, sizeof(file));
    sodium_memzero(&key, sizeof(key));
    sodium_memzero(seed, sizeof(seed));
    return error;
}

int tg_keys_nkey_publics(const char *folder, const char *name,
                         char out_texts[3][TG_NKEY_PUBLIC_LENGTH + 1], size_t *out_count)
{
    static const char *const endings[3] = {".pub", ".previous.pub", ".next.pub"};
    struct key_file file;
    uint8_t key[TG_NKEY_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        int error = read_nkey_line(&file, folder, name, endings[i]);
        if (error == -ENOENT && i > 0) {
            continue;
        }
        if (error != 0) {
            return keys_complain(file.path, strerror(-error), error);
        }
        if (tg_nkey_public_decode(file.line, strlen(file.line), key) != 0) {
            return keys_complain(file.path, "is not a user's NKey, one line \"U…\"",
                                 TG_ERR_MALFORMED);
        }
        memcpy(out_texts[count++], file.line, TG_NKEY_PUBLIC_LENGTH + 1);
    }
    *out_count = count;
    return 0;
}
