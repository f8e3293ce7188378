/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/keys.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

static char folder[64];

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/tidegate-keys-XXXXXX");
    if (sodium_init() < 0 || mkdtemp(folder) == NULL) {
        return -1;
    }
    return tg_keys_new(folder);
}

static int remove_folder(void **state)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void path_of(const char *name, char out_path[128])
{
    snprintf(out_path, 128, "%s/%s", folder, name);
}

static void write_text(const char *name, const char *text)
{
    char path[128];
    path_of(name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void read_text(const char *name, char *out_text, size_t capacity)
{
    char path[128];
    path_of(name, path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(out_text, 1, capacity - 1, file);
    out_text[length] = '\0';
    fclose(file);
}

static void copy_file(const char *from, const char *to)
{
    char text[256];
    read_text(from, text, sizeof(text));
    write_text(to, text);
}

static void every_key_is_made_and_read(void **state)
{
    static const char *const secrets[] = {"pass-mac", "reservation", "entrant", "buyer",
                                          "service.hash"};
    uint8_t keys[5][TG_KEY_BYTES];
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(tg_keys_secret(folder, secrets[i], keys[i]), 0);
        for (size_t j = 0; j < i; j++) {
            assert_memory_not_equal(keys[i], keys[j], TG_KEY_BYTES);
        }
    }
    struct tg_key_ring ring;
    assert_int_equal(tg_keys_ring(folder, "ticket", &ring), 0);
    assert_int_not_equal(ring.keys[0].id, 0);
    assert_int_equal(ring.keys[1].id, 0);
    assert_int_equal(ring.keys[2].id, 0);
}

static void signing_and_public_parts_belong_together(void **state)
{
    static const char *const names[] = {"pass", "control-operator", "control-invariant"};
    for (size_t i = 0; i < 3; i++) {
        struct tg_sign_key sign;
        struct tg_verify_key verify;
        assert_int_equal(tg_keys_sign(folder, names[i], &sign), 0);
        assert_int_equal(tg_keys_public(folder, names[i], &verify), 0);
        assert_memory_equal(sign.public_key, verify.public_key, 32);
        assert_string_equal(sign.id, verify.id);
        uint8_t signature[64];
        crypto_sign_detached(signature, NULL, (const uint8_t *)"x", 1, sign.secret);
        assert_int_equal(
            crypto_sign_verify_detached(signature, (const uint8_t *)"x", 1, verify.public_key), 0);
    }
}

static void the_service_credential_matches_its_hash(void **state)
{
    char text[64];
    uint8_t stored[TG_KEY_BYTES];
    uint8_t computed[TG_KEY_BYTES];
    assert_int_equal(tg_keys_text(folder, "service", text, sizeof(text)), 0);
    assert_int_equal(strlen(text), 43);
    assert_int_equal(tg_keys_secret(folder, "service.hash", stored), 0);
    tg_keys_service_hash(text, strlen(text), computed);
    assert_memory_equal(stored, computed, TG_KEY_BYTES);
    assert_int_equal(tg_keys_text(folder, "service", text, 43), TG_ERR_RANGE);
}

static void identities_have_nkeys_with_public_parts(void **state)
{
    static const char *const names[] = {"nats-edge", "nats-edge-waiting", "nats-ledger",
                                        "nats-operator"};
    struct tg_sign_key key;
    char publics[3][TG_NKEY_PUBLIC_LENGTH + 1], text[TG_NKEY_PUBLIC_LENGTH + 1];
    size_t count = 0;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tg_keys_nkey(folder, names[i], &key), 0);
        assert_int_equal(tg_keys_nkey_publics(folder, names[i], publics, &count), 0);
        tg_nkey_public_encode(key.public_key, text);
        assert_int_equal(count, 1);
        assert_string_equal(publics[0], text);
    }
    copy_file("nats-ledger.pub", "nats-edge.next.pub");
    assert_int_equal(tg_keys_nkey_publics(folder, "nats-edge", publics, &count), 0);
    assert_int_equal(count, 2);
    write_text("nats-edge", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VX\n");
    assert_int_equal(tg_keys_nkey(folder, "nats-edge", &key), TG_ERR_MALFORMED);
    assert_int_equal(tg_keys_nkey(folder, "nats-nobody", &key), -ENOENT);
}

static void rotation_takes_what_is_there(void **state)
{
    struct tg_verify_key keys[3];
    size_t count = 0;
    assert_int_equal(tg_keys_verify(folder, "pass", keys, &count), 0);
    assert_int_equal(count, 1);
    copy_file("control-operator.pub", "pass.next.pub");
    assert_int_equal(tg_keys_verify(folder, "pass", keys, &count), 0);
    assert_int_equal(count, 2);
    assert_memory_not_equal(keys[0].public_key, keys[1].public_key, 32);
    copy_file("buyer", "ticket.previous");
    struct tg_key_ring ring;
    int error = tg_keys_ring(folder, "ticket", &ring);
    /* One in 128 made keys cannot stand beside this one: then it says so instead of mixing them up.
     */
    assert_true(error == TG_ERR_MALFORMED ||
                (error == 0 && ring.keys[1].id != 0 && ring.keys[2].id == 0));
    copy_file("ticket.current", "ticket.previous");
    assert_int_equal(tg_keys_ring(folder, "ticket", &ring), TG_ERR_MALFORMED);
}

static bool there(const char *name)
{
    char path[128];
    path_of(name, path);
    return access(path, F_OK) == 0;
}

static void a_rotation_takes_three_steps(void **state)
{
    static const char *const names[] = {"ticket", "pass", "control-operator", "nats-edge"};
    static const char *const current[] = {"ticket.current", "pass.current", "control-operator",
                                          "nats-edge"};
    char before[256], after[256], name[64];
    for (size_t i = 0; i < 4; i++) {
        assert_true(tg_keys_rotates(names[i]));
        read_text(current[i], before, sizeof(before));
        assert_int_equal(tg_keys_rotate(folder, names[i], TG_KEYS_PROMOTE, false), -ENOENT);
        assert_int_equal(tg_keys_rotate(folder, names[i], TG_KEYS_PREPARE, true), 0);
        assert_int_equal(tg_keys_rotate(folder, names[i], TG_KEYS_PREPARE, false), 0);
        assert_int_equal(tg_keys_rotate(folder, names[i], TG_KEYS_PREPARE, false), -EEXIST);
        assert_int_equal(tg_keys_rotate(folder, names[i], TG_KEYS_PROMOTE, false), 0);
        read_text(current[i], after, sizeof(after));
        assert_string_not_equal(before, after);
        snprintf(name, sizeof(name), "%s.previous", names[i]);
        read_text(name, after, sizeof(after));
        assert_string_equal(before, after);
        assert_int_equal(tg_keys_rotate(folder, names[i], TG_KEYS_PREPARE, false), -EEXIST);
        assert_int_equal(tg_keys_rotate(folder, names[i], TG_KEYS_RETIRE, false), 0);
        assert_false(there(name));
        snprintf(name, sizeof(name), "%s.previous.pub", names[i]);
        assert_false(there(name));
    }
    struct tg_sign_key sign;
    struct tg_verify_key verify;
    assert_int_equal(tg_keys_sign(folder, "control-operator", &sign), 0);
    assert_int_equal(tg_keys_public(folder, "control-operator", &verify), 0);
    assert_memory_equal(sign.public_key, verify.public_key, 32);
    assert_false(tg_keys_rotates("entrant"));
    assert_false(tg_keys_rotates("control"));
}

/* A promotion that was cut off is given again, wherever it was. */
static void a_step_that_was_cut_off_is_given_again(void **state)
{
    struct tg_verify_key keys[3];
    size_t count = 0;
    char old_path[128], new_path[128];
    assert_int_equal(tg_keys_rotate(folder, "pass", TG_KEYS_PREPARE, false), 0);
    path_of("pass.current.pub", old_path);
    path_of("pass.previous.pub", new_path);
    assert_int_equal(link(old_path, new_path), 0);
    path_of("pass.next.pub", new_path);
    assert_int_equal(rename(new_path, old_path), 0);
    assert_int_equal(tg_keys_verify(folder, "pass", keys, &count), 0);
    assert_int_equal(count, 2); /* both are known all the while */
    assert_int_equal(tg_keys_rotate(folder, "pass", TG_KEYS_PROMOTE, false), 0);
    assert_true(there("pass.previous") && !there("pass.next"));
    struct tg_sign_key sign;
    assert_int_equal(tg_keys_sign(folder, "pass", &sign), 0);
    assert_int_equal(tg_keys_verify(folder, "pass", keys, &count), 0);
    assert_memory_equal(sign.public_key, keys[0].public_key, 32);
}

/* case-49: new keys never replace old ones, not even when only one of the old is left. */
static void case_49_nothing_is_overwritten(void **state)
{
    char before[256];
    char after[256];
    char path[128];
    read_text("reservation", before, sizeof(before));
    assert_int_equal(tg_keys_new(folder), -EEXIST);
    path_of("ticket.current", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tg_keys_new(folder), -EEXIST);
    assert_int_equal(access(path, F_OK), -1);
    read_text("reservation", after, sizeof(after));
    assert_string_equal(before, after);
}

static void secrets_are_private(void **state)
{
    static const char *const names[] = {"ticket.current", "pass.current",     "pass-mac",
                                        "reservation",    "entrant",          "buyer",
                                        "service",        "control-operator", "control-invariant",
                                        "nats-edge",      "nats-operator"};
    struct stat status;
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        path_of(names[i], path);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
    }
}

static void damaged_files_are_refused(void **state)
{
    char good[256];
    char bad[260];
    uint8_t key[TG_KEY_BYTES];
    read_text("pass-mac", good, sizeof(good));
    size_t length = strlen(good);
    for (size_t i = 0; i < length; i++) { /* any one character changed */
        memcpy(bad, good, length + 1);
        bad[i] = bad[i] == '0' ? '1' : '0';
        write_text("pass-mac", bad);
        assert_int_equal(tg_keys_secret(folder, "pass-mac", key), TG_ERR_MALFORMED);
    }
    for (size_t cut = 0; cut < length; cut++) { /* cut anywhere */
        memcpy(bad, good, length + 1);
        bad[cut] = '\0';
        write_text("pass-mac", bad);
        assert_int_equal(tg_keys_secret(folder, "pass-mac", key), TG_ERR_MALFORMED);
    }
    snprintf(bad, sizeof(bad), "%s\n", good);
    write_text("pass-mac", bad);
    assert_int_equal(tg_keys_secret(folder, "pass-mac", key), TG_ERR_MALFORMED);
    write_text("pass-mac", good);
    assert_int_equal(tg_keys_secret(folder, "pass-mac", key), 0);
}

static void missing_and_odd_files_are_told(void **state)
{
    uint8_t key[TG_KEY_BYTES];
    char path[128];
    path_of("entrant", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tg_keys_secret(folder, "entrant", key), -ENOENT);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(tg_keys_secret(folder, "entrant", key), -EINVAL);
    struct tg_sign_key sign;
    assert_int_equal(tg_keys_sign(folder, "nobody", &sign), -ENOENT);
    struct tg_verify_key verify;
    assert_int_equal(tg_keys_public(folder, "nobody", &verify), -ENOENT);
}

#define KEY_TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KEY_TEST(every_key_is_made_and_read),
        KEY_TEST(signing_and_public_parts_belong_together),
        KEY_TEST(the_service_credential_matches_its_hash),
        KEY_TEST(identities_have_nkeys_with_public_parts),
        KEY_TEST(rotation_takes_what_is_there),
        KEY_TEST(a_rotation_takes_three_steps),
        KEY_TEST(a_step_that_was_cut_off_is_given_again),
        KEY_TEST(case_49_nothing_is_overwritten),
        KEY_TEST(secrets_are_private),
        KEY_TEST(damaged_files_are_refused),
        KEY_TEST(missing_and_odd_files_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
