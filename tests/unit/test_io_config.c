/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/config.h"

#include "lib/pure/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct sample_settings {
#include "lib/io/config_members.h"

#include "tests/unit/test_io_config.def"

#include "lib/io/config_end.h"
};

static const struct tg_setting rows[] = {
#define TG_SETTINGS_OF struct sample_settings
#include "lib/io/config_rows.h"

#include "tests/unit/test_io_config.def"

#include "lib/io/config_end.h"
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static char said[4096];

static void forget(void)
{
    static const char *const names[] = {"REDIS_URL", "SHOP",         "NOTE",          "KEYS",
                                        "IN_FLIGHT", "RESEND_EVERY", "REDIS_URL_FILE"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char variable[64];
        snprintf(variable, sizeof(variable), "TIDEGATE_%s", names[i]);
        unsetenv(variable);
        snprintf(variable, sizeof(variable), "TIDEGATE_SAMPLE_%s", names[i]);
        unsetenv(variable);
    }
}

static int load(struct sample_settings *settings)
{
    FILE *errors = fmemopen(said, sizeof(said), "w");
    assert_non_null(errors);
    int error = tg_config_load("sample", rows, ROW_COUNT, settings, errors);
    fclose(errors);
    return error;
}

static void free_texts(struct sample_settings *settings)
{
    free((char *)settings->redis_url);
    free((char *)settings->shop);
    free((char *)settings->note);
    free((char *)settings->keys);
}

static void defaults_fill_what_is_not_set(void **state)
{
    struct sample_settings settings = {0};
    forget();
    setenv("TIDEGATE_SHOP", "tea", 1);
    assert_int_equal(load(&settings), 0);
    assert_string_equal(said, "");
    assert_string_equal(settings.redis_url, "redis://127.0.0.1:6379");
    assert_string_equal(settings.shop, "tea");
    assert_string_equal(settings.note, "");
    assert_string_equal(settings.keys, "/");
    assert_int_equal(settings.in_flight, 256);
    assert_int_equal(settings.resend_every_ms, 500);
    free_texts(&settings);
}

static void the_daemons_own_name_wins(void **state)
{
    struct sample_settings settings = {0};
    forget();
    setenv("TIDEGATE_SHOP", "tea", 1);
    setenv("TIDEGATE_SAMPLE_SHOP", "coffee", 1);
    setenv("TIDEGATE_IN_FLIGHT", "100", 1);
    setenv("TIDEGATE_SAMPLE_IN_FLIGHT", "1024", 1);
    setenv("TIDEGATE_SAMPLE_RESEND_EVERY", "1m", 1);
    assert_int_equal(load(&settings), 0);
    assert_string_equal(settings.shop, "coffee");
    assert_int_equal(settings.in_flight, 1024);
    assert_int_equal(settings.resend_every_ms, 60000);
    free_texts(&settings);
}

/* One bad value: refused, with the variable, the value and what was expected. */
static void expect_refused(const char *name, const char *value, const char *expected)
{
    struct sample_settings settings = {0};
    char variable[64];
    forget();
    setenv("TIDEGATE_SHOP", "tea", 1);
    snprintf(variable, sizeof(variable), "TIDEGATE_SAMPLE_%s", name);
    setenv(variable, value, 1);
    if (load(&settings) != TG_ERR_SETTING) {
        fail_msg("%s=\"%s\" was taken", variable, value);
    }
    assert_non_null(strstr(said, variable));
    if (strstr(said, expected) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", said, expected);
    }
    free_texts(&settings);
}

static void bad_integers_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "63",
                                      "1025",
                                      "1e+02",
                                      "+100",
                                      "0100",
                                      " 100",
                                      "100 ",
                                      "0x80",
                                      "-1",
                                      "100k",
                                      "1.0",
                                      "99999999999999999999",
                                      "ten"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_refused("IN_FLIGHT", bad[i], "a whole number from 64 to 1024 (commands)");
    }
}

static void bad_durations_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "500",
                                      "49ms",
                                      "61s",
                                      "2m",
                                      "1h",
                                      "-1s",
                                      "1 s",
                                      "1.5s",
                                      "s",
                                      "1S",
                                      "1sec",
                                      "99999999999999999999s"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_refused("RESEND_EVERY", bad[i], "a duration from 50ms to 1m");
    }
}

static void bad_texts_are_refused(void **state)
{
    expect_refused("SHOP", "", "not empty");
    expect_refused("SHOP", "a\nb", "no control characters");
    expect_refused("SHOP", "a\xff", "UTF-8");
    expect_refused("KEYS", "/no/such/folder", "readable file or folder");
    char long_text[1100];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    expect_refused("SHOP", long_text, "at most 1024 bytes");
    expect_refused("SHOP", "bell\a", "\"bell?\" is refused");
}

static void a_missing_required_setting_is_named(void **state)
{
    struct sample_settings settings = {0};
    forget();
    assert_int_equal(load(&settings), TG_ERR_SETTING);
    assert_string_equal(said,
                        "TIDEGATE_SAMPLE_SHOP is not set; expected a text that is not empty\n");
    free_texts(&settings);
}

static void every_problem_is_told_at_once(void **state)
{
    struct sample_settings settings = {0};
    forget();
    setenv("TIDEGATE_IN_FLIGHT", "none", 1);
    setenv("TIDEGATE_RESEND_EVERY", "never", 1);
    assert_int_equal(load(&settings), TG_ERR_SETTING);
    assert_non_null(strstr(said, "TIDEGATE_SAMPLE_SHOP"));
    assert_non_null(strstr(said, "TIDEGATE_IN_FLIGHT=\"none\""));
    assert_non_null(strstr(said, "TIDEGATE_RESEND_EVERY=\"never\""));
    free_texts(&settings);
}

static void printing_shows_values_but_no_passwords(void **state)
{
    struct sample_settings settings = {0};
    static char text[4096];
    forget();
    setenv("TIDEGATE_SHOP", "host=/run password=hunter2", 1);
    setenv("TIDEGATE_REDIS_URL", "redis://me:hunter2@10.0.0.1:6379", 1);
    assert_int_equal(load(&settings), 0);
    FILE *out = fmemopen(text, sizeof(text), "w");
    tg_config_print(out, "sample", rows, ROW_COUNT, &settings);
    fclose(out);
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, "TIDEGATE_SAMPLE_REDIS_URL=\"redis://me:***@10.0.0.1:6379\""));
    assert_non_null(
        strstr(text, "TIDEGATE_SAMPLE_IN_FLIGHT=256    # default 256, 64..1024 commands; "));
    assert_non_null(strstr(text, "TIDEGATE_SAMPLE_RESEND_EVERY=500ms"));
    free_texts(&settings);
}

static void write_secret(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void a_text_may_come_as_a_file(void **state)
{
    struct sample_settings settings = {0};
    char path[] = "/tmp/tidegate-secret-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    forget();
    said[0] = '\0';
    setenv("TIDEGATE_SHOP", "shop", 1);
    setenv("TIDEGATE_REDIS_URL", "redis://shared", 1);
    setenv("TIDEGATE_SAMPLE_REDIS_URL_FILE", path, 1);
    write_secret(path, "redis://me:hunter2@10.0.0.1\n", 0600);
    assert_int_equal(load(&settings), 0); /* its own name goes before the shared one */
    assert_string_equal(settings.redis_url, "redis://me:hunter2@10.0.0.1");
    assert_string_equal(said, "");
    free_texts(&settings);
    settings = (struct sample_settings){0};

    write_secret(path, "redis://me:hunter2@10.0.0.1\n", 0644);
    assert_int_equal(load(&settings), 0);
    assert_non_null(strstr(said, "TIDEGATE_SAMPLE_REDIS_URL_FILE: warning: everybody may read"));
    free_texts(&settings);
    settings = (struct sample_settings){0};

    write_secret(path, "hunter2\nhunter2\n", 0600);
    assert_int_equal(load(&settings), TG_ERR_SETTING); /* refused, but not shown */
    assert_non_null(strstr(said, "TIDEGATE_SAMPLE_REDIS_URL_FILE"));
    assert_null(strstr(said, "hunter2"));
    free_texts(&settings);
    settings = (struct sample_settings){0};

    write_secret(path, "", 0600);
    assert_int_equal(load(&settings), TG_ERR_SETTING);
    free_texts(&settings);
    settings = (struct sample_settings){0};
    write_secret(path, "redis://me", 0600);
    setenv("TIDEGATE_SAMPLE_REDIS_URL", "redis://other", 1);
    assert_int_equal(load(&settings), TG_ERR_SETTING); /* which one is meant? */
    free_texts(&settings);
    settings = (struct sample_settings){0};
    unlink(path);
    unsetenv("TIDEGATE_SAMPLE_REDIS_URL");
    assert_int_equal(load(&settings), TG_ERR_SETTING);
    free_texts(&settings);
    settings = (struct sample_settings){0};
    forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_fill_what_is_not_set),
        cmocka_unit_test(the_daemons_own_name_wins),
        cmocka_unit_test(bad_integers_are_refused),
        cmocka_unit_test(bad_durations_are_refused),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(a_missing_required_setting_is_named),
        cmocka_unit_test(every_problem_is_told_at_once),
        cmocka_unit_test(a_text_may_come_as_a_file),
        cmocka_unit_test(printing_shows_values_but_no_passwords),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
