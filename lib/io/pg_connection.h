/* SPDX-License-Identifier: Apache-2.0
 * One connection of the pool of lib/io/pg: connects, sends one statement at a time, tells its
 * outcome once. Private to lib/io/pg*. */
#ifndef TG_IO_PG_CONNECTION_H
#define TG_IO_PG_CONNECTION_H

#include "lib/io/pg.h"

enum { PG_FAULT_BYTES = 200 };

enum pg_link_state { PG_LINK_DOWN, PG_LINK_CONNECTING, PG_LINK_IDLE, PG_LINK_BUSY };

/* A statement on its way; one allocation with its text and parameters behind it. */
struct pg_job {
    struct pg_job *next;
    tg_pg_on_result *on_result;
    void *context;
    uint64_t token;
    uint64_t deadline_ms; /* of the loop's clock */
    unsigned attempts;
    struct tg_pg_statement statement; /* its pointers lead into this allocation */
};

struct pg_link {
    uv_loop_t *loop;
    const char *conninfo;
    PGconn *connection; /* NULL while down */
    uv_poll_t *poll;    /* heap: outlives the connection until its close callback */
    enum pg_link_state state;
    struct pg_job *job; /* while busy */
    PGresult *result;   /* first good result of the job, or the error that came after it */
    bool broken;        /* the job could not be sent: drop */
    uint64_t connect_until_ms;
    uint64_t retry_at_ms; /* while down */
    uint32_t backoff_ms;
    char fault[PG_FAULT_BYTES]; /* why the last attempt to connect failed; "" while none did */
    void (*on_change)(void *context,
                      struct pg_link *link); /* idle or down: work may be given or is over */
    void *context;
};

void pg_link_init(struct pg_link *link, uv_loop_t *loop, const char *conninfo);
/* Begins to connect; the outcome comes by on_change. */
void pg_link_connect(struct pg_link *link, uint64_t connect_ms);
/* Takes the job over and sends it. The link is idle. */
void pg_link_send(struct pg_link *link, struct pg_job *take_job);
/* Closes at once; a job under way ends with `status` and no result. */
void pg_link_drop(struct pg_link *link, int status);

struct pg_job *pg_job_new(const struct tg_pg_statement *statement);
/* Tells the outcome and frees. */
void pg_job_end(struct pg_job *take_job, int status, const PGresult *result);

#endif
