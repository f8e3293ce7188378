/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/app_parts.h"
#include "lib/io/now.h"

#include <getopt.h>
#include <string.h>

static const struct tg_setting common_rows[] = {
#define TG_SETTINGS_OF struct tg_common_settings
#include "lib/io/config_rows.h"

#include "catalog/settings.def"

#include "lib/io/config_end.h"
};

enum { COMMON_COUNT = sizeof(common_rows) / sizeof(common_rows[0]) };

enum app_action app_parse_options(int argc, char **argv, const struct tg_app_spec *spec)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, APP_HELP},
        {"version", no_argument, NULL, APP_VERSION},
        {"check-config", no_argument, NULL, APP_CHECK},
        {"healthcheck", no_argument, NULL, APP_HEALTH},
        {NULL, 0, NULL, 0},
    };
    enum app_action action = APP_RUN;
    optind = 1;
    for (;;) {
        int option = getopt_long(argc, argv, "", options, NULL);
        if (option == -1) {
            break;
        }
        if (option == '?') {
            fprintf(stderr, "tidegate-%s: see --help\n", spec->name);
            return APP_USAGE;
        }
        action = (enum app_action)option;
    }
    if (optind < argc) {
        fprintf(stderr, "tidegate-%s: \"%s\" is no option; see --help\n", spec->name, argv[optind]);
        return APP_USAGE;
    }
    return action;
}

void app_print_help(FILE *out, const struct tg_app_spec *spec)
{
    fprintf(out,
            "tidegate-%s: %s\n\n"
            "  --help          this text\n"
            "  --version       the version\n"
            "  --check-config  check the settings, print them, exit 0 or 78\n"
            "  --healthcheck   ask the admin port of a running one, exit 0 when it is ready\n\n"
            "Settings come from the environment. Of this daemon:\n",
            spec->name, spec->summary);
    tg_config_print(out, spec->name, spec->rows, spec->row_count, NULL);
    fprintf(out, "\nOf every daemon (TIDEGATE_NAME serves all where its own is not set):\n");
    tg_config_print(out, spec->name, common_rows, COMMON_COUNT, NULL);
}

void app_print_settings(FILE *out, const struct tg_app *app)
{
    const struct tg_app_spec *spec = app->spec;
    tg_config_print(out, spec->name, spec->rows, spec->row_count, spec->settings);
    tg_config_print(out, spec->name, common_rows, COMMON_COUNT, &app->settings);
}

static int take_log_level(struct tg_app *app, FILE *errors)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strcmp(app->settings.log_level, levels[i]) == 0) {
            app->log_level = (enum tg_log_level)i;
            return 0;
        }
    }
    fprintf(errors, "TIDEGATE_LOG_LEVEL=\"%s\" is refused; expected debug, info, warn or error\n",
            app->settings.log_level);
    return TG_ERR_SETTING;
}

static void make_instance(struct tg_app *app)
{
    static const char alphabet[] = "abcdefghijkmnpqrstuvwxyz23456789";
    uint8_t random[6];
    char tail[sizeof(random) + 1];
    tg_random(random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++) {
        tail[i] = alphabet[random[i] % 32];
    }
    tail[sizeof(random)] = '\0';
    snprintf(app->instance, sizeof(app->instance), "%.20s-%s", app->spec->name, tail);
}

static int take_instance(struct tg_app *app, FILE *errors)
{
    const char *given = app->settings.instance;
    size_t length = strlen(given);
    if (length == 0) {
        make_instance(app);
        return 0;
    }
    if (length > APP_INSTANCE_LENGTH ||
        strspn(given, "abcdefghijklmnopqrstuvwxyz0123456789-") != length) {
        fprintf(errors, "TIDEGATE_INSTANCE=\"%s\" is refused; expected 1 to 32 of a-z, 0-9 and -\n",
                given);
        return TG_ERR_SETTING;
    }
    memcpy(app->instance, given, length + 1);
    return 0;
}

int app_load_settings(struct tg_app *app, FILE *errors)
{
    const struct tg_app_spec *spec = app->spec;
    int own = tg_config_load(spec->name, spec->rows, spec->row_count, spec->settings, errors);
    int error = tg_config_load(spec->name, common_rows, COMMON_COUNT, &app->settings, errors);
    if (error == 0) {
        int level = take_log_level(app, errors);
        int instance = take_instance(app, errors);
        error = level != 0 ? level : instance;
    }
    return own != 0 ? own : error;
}
