/* SPDX-License-Identifier: Apache-2.0
 * keys new: every key of a deployment, once. keys nats: who may do what on the bus. */
#include "tools/tidegatectl/ctl.h"

#include "lib/io/keys.h"
#include "tools/tidegatectl/rights.h"

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
    return ctl_rights_write(stdout, arguments->positional[0]) == 0 ? CTL_DONE : CTL_SETTINGS;
}
