/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/pass_keys.h"

#include "lib/io/keys.h"
#include "lib/io/keys_inner.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int read_es256(const char *folder, struct tg_pass_keys *keys)
{
    struct tg_verify_key publics[TG_PASS_KEYS_MAX];
    char path[PATH_MAX];
    size_t count = 0;
    int error = keys_path(folder, "pass-es256.current.pub", "", path);
    if (error == 0 && access(path, F_OK) != 0) {
        return 0;
    }
    if (error == 0) {
        error = tg_keys_verify(folder, "pass-es256", publics, &count);
    }
    for (size_t i = 0; i < count && error == 0; i++) {
        memcpy(keys->es256_ids[i], publics[i].id, sizeof(keys->es256_ids[i]));
        error = tg_es256_open_public(publics[i].public_key, &keys->es256[i]);
        keys->es256_count += error == 0;
    }
    if (error == TG_ERR_MALFORMED) {
        (void)fprintf(stderr, "key files %s/pass-es256.*.pub: one is no point of P-256\n", folder);
    }
    return error;
}

int tg_pass_keys_read(const char *folder, struct tg_pass_keys *keys)
{
    struct tg_pass_keys fresh = {0};
    int error = tg_keys_verify(folder, "pass", fresh.eddsa, &fresh.eddsa_count);
    if (error == 0) {
        error = read_es256(folder, &fresh);
    }
    tg_pass_keys_free(error == 0 ? keys : &fresh);
    if (error == 0) {
        *keys = fresh;
    }
    return error;
}

void tg_pass_keys_free(struct tg_pass_keys *keys)
{
    for (size_t i = 0; i < keys->es256_count; i++) {
        keys->es256[i] = tg_es256_free(keys->es256[i]);
    }
    keys->es256_count = 0;
}

static int verify_es256(const struct tg_pass_keys *keys, const struct tg_pass_read *read,
                        const char *text)
{
    for (size_t i = 0; i < keys->es256_count; i++) {
        if (strcmp(keys->es256_ids[i], read->kid) == 0) {
            return tg_es256_verify(keys->es256[i], text, read->signed_length, read->signature)
                       ? 0
                       : TG_ERR_FORGED;
        }
    }
    return TG_ERR_FORGED;
}

int tg_pass_keys_verify(const struct tg_pass_keys *keys, const char *text, size_t length,
                        struct tg_pass *out_pass)
{
    struct tg_pass_read read;
    int error = tg_pass_read(text, length, &read);
    if (error != 0) {
        return error;
    }
    switch (read.algorithm) {
    case TG_PASS_EDDSA:
        return tg_pass_verify(keys->eddsa, keys->eddsa_count, text, length, out_pass);
    case TG_PASS_ES256:
        error = verify_es256(keys, &read, text);
        if (error == 0) {
            *out_pass = read.pass;
        }
        return error;
    }
    return TG_ERR_FORGED;
}

int tg_pass_keys_es256(const char *folder, char id[9], struct tg_es256 **key)
{
    uint8_t secret[TG_ES256_KEY_BYTES], x[TG_ES256_KEY_BYTES], y[TG_ES256_KEY_BYTES];
    struct tg_es256 *fresh = NULL;
    int error = tg_keys_secret(folder, "pass-es256.current", secret);
    if (error == 0) {
        error = tg_es256_open_secret(secret, &fresh);
        if (error != 0) {
            (void)fprintf(stderr, "key file %s/pass-es256.current: is no secret of ES256\n",
                          folder);
        }
    }
    sodium_memzero(secret, sizeof(secret));
    if (error == 0) {
        (void)tg_es256_free(*key);
        *key = fresh;
        tg_es256_point(fresh, x, y);
        keys_id(x, id);
    }
    return error;
}
