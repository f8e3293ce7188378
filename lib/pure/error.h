/* SPDX-License-Identifier: Apache-2.0
 * Operating errors: negative codes, -errno of the system or one of ours. Never a domain outcome
 * (see reason.h). */
#ifndef TG_PURE_ERROR_H
#define TG_PURE_ERROR_H

#define TG_MUST_CHECK __attribute__((warn_unused_result))

enum tg_error {
    TG_ERR_MALFORMED = -1001,     /* bytes that are not what they should be */
    TG_ERR_RANGE = -1002,         /* a number or length out of its bounds */
    TG_ERR_FULL = -1003,          /* a bounded table, queue or buffer is full */
    TG_ERR_TIMEOUT = -1004,       /* no answer in time: the outcome is unknown */
    TG_ERR_DISCONNECTED = -1005,  /* not connected, or it broke: unknown if it was sent */
    TG_ERR_NO_RESPONDERS = -1006, /* nobody serves the subject: nothing was done */
    TG_ERR_FORGED = -1007,        /* a MAC, signature or seal that does not verify */
    TG_ERR_REMOTE = -1008,        /* the peer answered with an error of its own */
    TG_ERR_STORE = -1009,         /* the store refused the statement */
    TG_ERR_SETTING = -1010        /* a setting is missing or out of its range */
};

/* A short lower-case sentence for logs. Never NULL. */
const char *tg_error_text(int error);

#endif
