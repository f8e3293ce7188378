/* SPDX-License-Identifier: Apache-2.0
 * draw new, draw beacon: the secret of a draw before the sale, the beacon's value after the
 * opening. draw verify: everything again from what was published. */
#include "tools/tidegatectl/control.h"
#include "tools/tidegatectl/draw_check.h"

#include "lib/io/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PATH_BYTES = 4096, FOLDER_BYTES = 3072 };

enum ctl_exit ctl_draw_new(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    const char *sale = arguments->positional[0];
    uint8_t secret[TG_KEY_BYTES], commitment[TG_DRAW_BYTES];
    char text[2 * TG_DRAW_BYTES + 1];
    if (!ctl_sale_name(sale)) {
        return CTL_USAGE;
    }
    if (!ctl_needs_keys(options)) {
        return CTL_SETTINGS;
    }
    if (tg_keys_draw_new(options->keys, sale, secret) != 0) {
        return CTL_REFUSED; /* it has said why */
    }
    tg_draw_commit(secret, commitment);
    memset(secret, 0, sizeof(secret));
    tg_hex_encode(commitment, sizeof(commitment), text);
    if (options->format != CTL_TABLE) {
        char prefixed[sizeof("sha256:") + sizeof(text)];
        (void)snprintf(prefixed, sizeof(prefixed), "sha256:%s", text);
        ctl_print_document(options->format,
                           json_pack("{s:s, s:s}", "sale", sale, "commitment", prefixed));
        return CTL_DONE;
    }
    (void)printf("the secret is in %s/draw-%s: every queue reads it there, nobody else may\n"
                 "for the sale file:\n"
                 "policy: {order: random, commitment: sha256:%s}\n",
                 options->keys, sale, text);
    return CTL_DONE;
}

enum ctl_exit ctl_draw_beacon(const struct ctl_options *options,
                              const struct ctl_arguments *arguments)
{
    const char *value = arguments->positional[1];
    uint8_t beacon[TG_BEACON_BYTES];
    size_t length = strlen(value) / 2;
    struct ctl_wish wish = {.verb = "beacon",
                            .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_BEACON,
                            .sale = arguments->positional[0],
                            .cause = value,
                            .plan = arguments->dry_run};
    if (!ctl_sale_name(wish.sale)) {
        return CTL_USAGE;
    }
    if (length < 1 || length > sizeof(beacon) ||
        tg_hex_decode(value, strlen(value), beacon, length) != 0) {
        (void)fprintf(stderr,
                      "tidegatectl: VALUE: expected 1 to %d bytes in lower-case hex; of a longer "
                      "beacon its SHA-256\n",
                      TG_BEACON_BYTES);
        return CTL_USAGE;
    }
    return ctl_control(options, &wish);
}

/* ---- verify ---- */

/* curl does the transfer, onto its standard output: TLS, proxies and names are its business. Of a
 * numbered address ([0-9]) it gets all, in order, over one connection. */
static bool fetch(const char *url, const char *path)
{
    const char *const command[] = {"curl", "-fsS", "--fail-early", "--retry", "3", url, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path,
                                           O_WRONLY | O_CREAT | O_TRUNC, 0644);
    int error = posix_spawnp(&child, command[0], &actions, NULL, (char *const *)(uintptr_t)command,
                             environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        (void)fprintf(stderr,
                      "tidegatectl: curl: %s; download the files yourself (docs/draw.md) and name "
                      "their folder\n",
                      strerror(error));
        return false;
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* draw.json and the roster of a sale's address into a folder. */
static bool fetch_all(const char *url, const char *folder)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    struct draw_claim claim;
    (void)snprintf(from, sizeof(from), "%s/draw.json", url);
    (void)snprintf(to, sizeof(to), "%s/draw.json", folder);
    if (!fetch(from, to) || !draw_claim_read(folder, &claim)) {
        return false;
    }
    (void)snprintf(from, sizeof(from), "%s/roster/[0-%llu]", url,
                   (unsigned long long)(claim.parts > 0 ? claim.parts - 1 : 0));
    (void)snprintf(to, sizeof(to), "%s/roster", folder);
    if (claim.parts == 0) {
        FILE *nobody = fopen(to, "we");
        return nobody != NULL && fclose(nobody) == 0;
    }
    return fetch(from, to);
}

enum ctl_exit ctl_draw_verify(const struct ctl_options *options,
                              const struct ctl_arguments *arguments)
{
    const char *source = arguments->positional[0];
    const struct draw_wish wish = {
        .entrant = arguments->entrant, .order_file = arguments->order, .format = options->format};
    if (strncmp(source, "http://", 7) != 0 && strncmp(source, "https://", 8) != 0) {
        return draw_check(source, &wish) ? CTL_DONE : CTL_REFUSED;
    }
    const char *temporary = getenv("TMPDIR");
    char folder[FOLDER_BYTES];
    int length = snprintf(folder, sizeof(folder), "%s/tidegate-draw-XXXXXX",
                          temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp");
    if (length >= (int)sizeof(folder)) {
        (void)fprintf(stderr, "tidegatectl: TMPDIR is too long\n");
        return CTL_SETTINGS;
    }
    if (mkdtemp(folder) == NULL) {
        (void)fprintf(stderr, "tidegatectl: %s: %s\n", folder, strerror(errno));
        return CTL_SETTINGS;
    }
    if (!fetch_all(source, folder)) {
        (void)fprintf(
            stderr,
            "tidegatectl: %s: draw.json or the roster cannot be had there: the address of "
            "a sale is expected whose order is drawn (random, lottery), after its "
            "opening\n",
            source);
        return CTL_UNREACHABLE;
    }
    (void)fprintf(stderr, "downloaded to %s\n", folder);
    return draw_check(folder, &wish) ? CTL_DONE : CTL_REFUSED;
}
