/* SPDX-License-Identifier: Apache-2.0
 * token buyer: what the shop would issue to a signed-in buyer, for demos and tests. */
#include "tools/tidegatectl/ctl.h"

#include "lib/io/jwt.h"
#include "lib/io/keys.h"
#include "lib/io/now.h"

#include <string.h>

enum ctl_exit ctl_token_buyer(const struct ctl_options *options,
                              const struct ctl_arguments *arguments)
{
    const char *user = arguments->positional[0];
    uint8_t secret[TG_KEY_BYTES];
    char token[1024];
    int64_t life_ms = 0;
    if (!tg_user_valid((const uint8_t *)user, strlen(user))) {
        (void)fprintf(
            stderr,
            "tidegatectl: ID: expected 1 to 128 bytes of UTF-8 without control characters\n");
        return CTL_USAGE;
    }
    if (!ctl_duration("--life", arguments->life != NULL ? arguments->life : "1h", 1000,
                      30LL * 24 * 3600 * 1000, &life_ms)) {
        return CTL_USAGE;
    }
    if (!ctl_needs_keys(options) || tg_keys_secret(options->keys, "buyer", secret) != 0) {
        return CTL_SETTINGS;
    }
    struct tg_wall now = tg_now_wall();
    if (tg_jwt_issue(secret, user, now, life_ms, token) == 0) {
        (void)fprintf(stderr, "tidegatectl: ID: a token for it cannot be issued\n");
        return CTL_USAGE;
    }
    if (options->format != CTL_TABLE) {
        ctl_print_document(options->format,
                           json_pack("{s:s, s:s, s:I}", "user", user, "token", token, "expiresAtMs",
                                     (json_int_t)now.ms + life_ms));
        return CTL_DONE;
    }
    (void)printf("%s\n", token);
    return CTL_DONE;
}
