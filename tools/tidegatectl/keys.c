/* SPDX-License-Identifier: Apache-2.0
 * keys new: every key of a deployment, once.
 * keys nats: who may do what on the bus. keys prepare, promote, retire: a rotation. */
#include "tools/tidegatectl/ctl.h"

#include "lib/io/keys.h"
#include "tools/tidegatectl/rights.h"

#include <stdlib.h>
#include <string.h>

enum ctl_exit ctl_keys_new(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    const char *folder = arguments->positional[0];
    if (tg_keys_new(folder) != 0) {
        return CTL_REFUSED; /* it has said why */
    }
    if (options->format != CTL_TABLE) {
        ctl_print_document(options->format, json_pack("{s:s}", "folder", folder));
        return CTL_DONE;
    }
    (void)printf("keys made in %s\nsecret: keep them out of backups and images; only *.pub and "
                 "service.hash may be "
                 "shared\n",
                 folder);
    return CTL_DONE;
}

enum ctl_exit ctl_keys_nats(const struct ctl_options *options,
                            const struct ctl_arguments *arguments)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length); /* half of it is no configuration */
    if (out == NULL) {
        return CTL_SETTINGS;
    }
    int error = ctl_rights_write(out, arguments->positional[0]);
    if (fclose(out) == 0 && error == 0) {
        (void)fwrite(text, 1, length, stdout);
    }
    free(text);
    return error == 0 ? CTL_DONE : CTL_SETTINGS;
}

/* What is to be done before the next step, so that nobody meets a key he does not know. */
static void tell_next(const char *name, enum tg_keys_step step)
{
    bool nkey = strncmp(name, "nats-", 5) == 0;
    const char *tell = nkey ? "write NATS's accounts anew (keys nats) and have NATS reload them"
                            : "give the folder to all daemons and send each SIGHUP, or restart it";
    switch (step) {
    case TG_KEYS_PREPARE:
        (void)printf("%s.next is made; now %s, then: keys promote %s\n", name, tell, name);
        return;
    case TG_KEYS_PROMOTE:
        (void)printf(
            "%s is replaced, the old one is %s.previous; now give the folder to who uses "
            "it and send each SIGHUP, or restart it; when nothing of the old one is in use "
            "(docs/operations/keys.md): keys retire %s\n",
            name, name, name);
        return;
    case TG_KEYS_RETIRE:
        (void)printf("%s.previous is removed; now %s\n", name, tell);
        return;
    }
}

static enum ctl_exit rotate(const struct ctl_options *options,
                            const struct ctl_arguments *arguments, enum tg_keys_step step)
{
    const char *name = arguments->positional[0];
    if (!ctl_needs_keys(options)) {
        return CTL_SETTINGS;
    }
    if (!tg_keys_rotates(name)) {
        (void)fprintf(stderr,
                      "tidegatectl: %s is no key that rotates; expected ticket, pass, pass-es256, "
                      "control-operator, control-invariant or nats-IDENTITY\n",
                      name);
        return CTL_USAGE;
    }
    if (tg_keys_rotate(options->keys, name, step, arguments->dry_run) != 0) {
        return CTL_REFUSED; /* it has said why */
    }
    if (options->format != CTL_TABLE) {
        ctl_print_document(options->format, json_pack("{s:s,s:s,s:b}", "folder", options->keys,
                                                      "name", name, "done", !arguments->dry_run));
    } else if (arguments->dry_run) {
        (void)printf("it can be done; nothing was changed in %s\n", options->keys);
    } else {
        tell_next(name, step);
    }
    return CTL_DONE;
}

enum ctl_exit ctl_keys_prepare(const struct ctl_options *options,
                               const struct ctl_arguments *arguments)
{
    return rotate(options, arguments, TG_KEYS_PREPARE);
}

enum ctl_exit ctl_keys_promote(const struct ctl_options *options,
                               const struct ctl_arguments *arguments)
{
    return rotate(options, arguments, TG_KEYS_PROMOTE);
}

enum ctl_exit ctl_keys_retire(const struct ctl_options *options,
                              const struct ctl_arguments *arguments)
{
    return rotate(options, arguments, TG_KEYS_RETIRE);
}
