/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/pg_connection.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 2000, ATTEMPTS_MAX = 6 };

static size_t value_bytes(const struct tg_pg_statement *statement, int i)
{
    if (statement->values[i] == NULL) {
        return 0;
    }
    return statement->formats[i] == 1 ? (size_t)statement->lengths[i]
                                      : strlen(statement->values[i]) + 1;
}

struct pg_job *pg_job_new(const struct tg_pg_statement *statement)
{
    size_t sql_bytes = strlen(statement->sql) + 1;
    size_t total = sizeof(struct pg_job) + sql_bytes;
    for (int i = 0; i < statement->parameter_count; i++) {
        total += value_bytes(statement, i);
    }
    struct pg_job *job = calloc(1, total);
    if (job == NULL) {
        return NULL;
    }
    char *end = (char *)(job + 1);
    memcpy(end, statement->sql, sql_bytes);
    job->statement.sql = end;
    job->statement.parameter_count = statement->parameter_count;
    end += sql_bytes;
    for (int i = 0; i < statement->parameter_count; i++) {
        size_t bytes = value_bytes(statement, i);
        job->statement.formats[i] = statement->formats[i];
        job->statement.lengths[i] = statement->lengths[i];
        if (statement->values[i] != NULL) {
            memcpy(end, statement->values[i], bytes);
            job->statement.values[i] = end;
            end += bytes;
        }
    }
    return job;
}

void pg_job_end(struct pg_job *take_job, int status, const PGresult *result)
{
    take_job->on_result(take_job->context, take_job->token, status, result);
    free(take_job);
}

void pg_link_init(struct pg_link *link, uv_loop_t *loop, const char *conninfo)
{
    memset(link, 0, sizeof(*link));
    link->loop = loop;
    link->conninfo = conninfo;
    link->state = PG_LINK_DOWN;
    link->backoff_ms = BACKOFF_FIRST_MS;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

/* The poll handle must be closed before libpq closes or replaces the socket under it. */
static void stop_poll(struct pg_link *link)
{
    if (link->poll != NULL) {
        link->poll->data = NULL;
        uv_close((uv_handle_t *)link->poll, free_handle);
        link->poll = NULL;
    }
}

static void note_fault(struct pg_link *link)
{
    const char *text = PQerrorMessage(link->connection);
    if (link->state == PG_LINK_CONNECTING && text[0] != '\0') {
        (void)snprintf(link->fault, sizeof(link->fault), "PostgreSQL: %.*s",
                       (int)strcspn(text, "\n"), text);
    }
}

static void close_connection(struct pg_link *link)
{
    note_fault(link);
    stop_poll(link);
    PQfinish(link->connection);
    link->connection = NULL;
    link->state = PG_LINK_DOWN;
    link->retry_at_ms = uv_now(link->loop) + link->backoff_ms;
    link->backoff_ms =
        link->backoff_ms * 2 < BACKOFF_MAX_MS ? link->backoff_ms * 2 : BACKOFF_MAX_MS;
}

void pg_link_drop(struct pg_link *link, int status)
{
    if (link->state == PG_LINK_DOWN) {
        return;
    }
    struct pg_job *job = link->job;
    PGresult *result = link->result;
    link->job = NULL;
    link->result = NULL;
    link->broken = false;
    close_connection(link);
    PQclear(result);
    if (job != NULL) {
        pg_job_end(job, status, NULL);
    }
    link->on_change(link->context, link);
}

static void on_ready(uv_poll_t *poll, int status, int events);

static int watch(struct pg_link *link, int events)
{
    if (link->poll == NULL) {
        link->poll = calloc(1, sizeof(*link->poll));
        if (link->poll == NULL) {
            return UV_ENOMEM;
        }
        int error = uv_poll_init(link->loop, link->poll, PQsocket(link->connection));
        if (error != 0) {
            free(link->poll);
            link->poll = NULL;
            return error;
        }
        link->poll->data = link;
    }
    return uv_poll_start(link->poll, events, on_ready);
}

void pg_link_connect(struct pg_link *link, uint64_t connect_ms)
{
    assert(link->state == PG_LINK_DOWN);
    const char *const names[] = {"dbname", "fallback_application_name", "client_encoding", NULL};
    const char *const values[] = {link->conninfo, "tidegate", "UTF8", NULL};
    link->connection = PQconnectStartParams(names, values, 1);
    link->state = PG_LINK_CONNECTING;
    link->connect_until_ms = uv_now(link->loop) + connect_ms;
    if (link->connection == NULL || PQstatus(link->connection) == CONNECTION_BAD ||
        watch(link, UV_WRITABLE) != 0) {
        close_connection(link);
    }
}

/* Notices are for people at a terminal; a library does not print. */
static void drop_notice(void *context, const PGresult *notice)
{
}

/* libpq may have moved to another socket (next host, SSL retry): watch the present one. */
static void go_on_connecting(struct pg_link *link)
{
    PostgresPollingStatusType step = PQconnectPoll(link->connection);
    if (step == PGRES_POLLING_FAILED) {
        pg_link_drop(link, TG_ERR_DISCONNECTED);
        return;
    }
    stop_poll(link);
    bool ready = step == PGRES_POLLING_OK;
    if (watch(link, ready || step == PGRES_POLLING_READING ? UV_READABLE : UV_WRITABLE) != 0) {
        pg_link_drop(link, TG_ERR_DISCONNECTED);
        return;
    }
    if (ready) {
        (void)PQsetnonblocking(link->connection, 1);
        PQsetNoticeReceiver(link->connection, drop_notice, NULL);
        link->state = PG_LINK_IDLE;
        link->backoff_ms = BACKOFF_FIRST_MS;
        link->fault[0] = '\0';
        link->on_change(link->context, link);
    }
}

static bool flush(struct pg_link *link)
{
    int left = PQflush(link->connection);
    if (left < 0) {
        return false;
    }
    return watch(link, left == 1 ? UV_READABLE | UV_WRITABLE : UV_READABLE) == 0;
}

static void send_job(struct pg_link *link)
{
    const struct tg_pg_statement *statement = &link->job->statement;
    int sent =
        statement->parameter_count == 0
            ? PQsendQuery(link->connection, statement->sql)
            : PQsendQueryParams(link->connection, statement->sql, statement->parameter_count, NULL,
                                statement->values, statement->lengths, statement->formats, 0);
    if (sent != 1 || !flush(link)) {
        link->broken =
            true; /* told by the pool's next tick: never from inside the caller's tg_pg_run */
    }
}

void pg_link_send(struct pg_link *link, struct pg_job *take_job)
{
    assert(link->state == PG_LINK_IDLE && link->job == NULL);
    link->job = take_job;
    link->job->attempts = 1;
    link->state = PG_LINK_BUSY;
    send_job(link);
}

static bool is_error(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY;
}

/* An error always wins: one that follows a good result means the commit failed. */
static void keep_result(struct pg_link *link, PGresult *take_result)
{
    if (link->result != NULL && is_error(link->result)) {
        PQclear(take_result);
        return;
    }
    PQclear(link->result);
    link->result = take_result;
}

static bool sqlstate_is(const PGresult *result, const char *code)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state != NULL && strncmp(state, code, strlen(code)) == 0;
}

/* ReadyForQuery was read: the outcome is final, unless the connection went down with it. */
static void finish_job(struct pg_link *link)
{
    PGresult *result = link->result;
    struct pg_job *job = link->job;
    if (result == NULL || PQstatus(link->connection) == CONNECTION_BAD) {
        pg_link_drop(link, TG_ERR_DISCONNECTED);
        return;
    }
    link->result = NULL;
    bool failed = is_error(result);
    bool clash = failed && (sqlstate_is(result, "40001") || sqlstate_is(result, "40P01"));
    if (clash && job->attempts < ATTEMPTS_MAX && uv_now(link->loop) < job->deadline_ms) {
        PQclear(result);
        job->attempts++;
        send_job(link);
        return;
    }
    /* A server that became read-only was demoted under us: leave it. */
    bool leave = failed && (sqlstate_is(result, "25006") || sqlstate_is(result, "57P0"));
    link->job = NULL;
    link->state = PG_LINK_IDLE;
    pg_job_end(job, failed ? TG_ERR_STORE : 0, result);
    PQclear(result);
    if (leave) {
        pg_link_drop(link, TG_ERR_DISCONNECTED);
    } else if (link->state == PG_LINK_IDLE) {
        link->on_change(link->context, link);
    }
}

static void read_results(struct pg_link *link)
{
    if (PQconsumeInput(link->connection) != 1) {
        pg_link_drop(link, TG_ERR_DISCONNECTED);
        return;
    }
    while (link->state == PG_LINK_BUSY && PQisBusy(link->connection) == 0) {
        PGresult *result = PQgetResult(link->connection);
        if (result == NULL) {
            finish_job(link);
            return;
        }
        keep_result(link, result);
    }
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct pg_link *link = poll->data;
    if (link == NULL) {
        return;
    }
    if (link->state == PG_LINK_CONNECTING) {
        go_on_connecting(link);
        return;
    }
    if (status < 0 || ((events & UV_WRITABLE) != 0 && !flush(link))) {
        pg_link_drop(link, TG_ERR_DISCONNECTED);
        return;
    }
    if ((events & UV_READABLE) != 0) {
        read_results(link);
    }
}
