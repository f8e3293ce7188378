/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/error.h"

#include <string.h>

static const char *own_text(enum tg_error error)
{
    switch (error) {
    case TG_ERR_MALFORMED:
        return "malformed";
    case TG_ERR_RANGE:
        return "out of range";
    case TG_ERR_FULL:
        return "full";
    case TG_ERR_TIMEOUT:
        return "no answer in time";
    case TG_ERR_DISCONNECTED:
        return "not connected";
    case TG_ERR_NO_RESPONDERS:
        return "nobody serves this subject";
    case TG_ERR_FORGED:
        return "signature or seal does not verify";
    case TG_ERR_REMOTE:
        return "the peer answered with an error";
    case TG_ERR_STORE:
        return "the store refused the statement";
    case TG_ERR_SETTING:
        return "setting missing or out of range";
    }
    return NULL;
}

const char *tg_error_text(int error)
{
    if (error >= 0) {
        return "no error";
    }
    const char *text = own_text((enum tg_error)error);
    if (text == NULL && error > -1000) {
        text = strerrordesc_np(-error);
    }
    return text != NULL ? text : "unknown error";
}
