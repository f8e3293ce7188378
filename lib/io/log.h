/* SPDX-License-Identifier: Apache-2.0
 * One JSON object a line on standard error: ts, level, daemon, instance, event, then the fields
 * given. Event names are dotted and never change. Never log a token, a credential or a user id.
 * Libraries do not log; the handler logs once. */
#ifndef TG_IO_LOG_H
#define TG_IO_LOG_H

#include <stdint.h>

enum tg_log_level { TG_LOG_DEBUG, TG_LOG_INFO, TG_LOG_WARN, TG_LOG_ERROR };

void tg_log_open(const char *daemon, const char *instance, enum tg_log_level level);

/* One field of a line. Build with the macros; a line ends with TG_LOG_END. */
struct tg_log_field {
    const char *name;
    enum { TG_LOG_FIELD_END, TG_LOG_FIELD_TEXT, TG_LOG_FIELD_NUMBER } kind;
    const char *text;
    int64_t number;
};
void tg_log_line(enum tg_log_level level, const char *event, const struct tg_log_field *fields);

#define TG_TEXT_FIELD(field, value)                                                                \
    {                                                                                              \
        .name = (field), .kind = TG_LOG_FIELD_TEXT, .text = (value)                                \
    }
#define TG_NUMBER_FIELD(field, value)                                                              \
    {                                                                                              \
        .name = (field), .kind = TG_LOG_FIELD_NUMBER, .number = (int64_t)(value)                   \
    }
/* tg_log(TG_LOG_INFO, "gate.armed", TG_TEXT_FIELD("sale", name), TG_NUMBER_FIELD("epoch", 3)); */
#define tg_log(level, event, ...)                                                                  \
    tg_log_line(                                                                                   \
        (level), (event),                                                                          \
        (const struct tg_log_field[]){__VA_ARGS__ __VA_OPT__(, ){.kind = TG_LOG_FIELD_END}})

/* A step in a reservation's life, at info: one line per effect (never per request), what
 * `tidegatectl trace` follows. event: "reservation.held", ".recorded", ".told", ".acknowledged",
 * ".confirmed", ".settled", ".expired", ".cancelled", ".released", ".extended", ".obeyed". */
void tg_log_step(const char *event, const char *sale, const char *reservation_id,
                 const char *traceparent);

#endif
