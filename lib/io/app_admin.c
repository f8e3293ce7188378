/* SPDX-License-Identifier: Apache-2.0
 * The admin port: /livez depends on the process only, /readyz on what the daemon needs, /metrics is
 * Prometheus text. */
#include "lib/io/app_parts.h"
#include "lib/io/bus.h"
#include "lib/io/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ADMIN_CONNECTIONS = 64, VERBOSE_BYTES = 512 };

static const char *phase_why(enum app_phase phase)
{
    switch (phase) {
    case APP_STARTING:
        return "starting";
    case APP_RUNNING:
        return "";
    case APP_DRAINING:
    case APP_FLUSHING:
        return "draining";
    case APP_STOPPED:
        return "stopped";
    }
    return "unknown";
}

/* "" when the bus is as it should be. */
static const char *bus_fault(const struct tg_app *app)
{
    return app->spec->without_bus || app->bus == NULL ? "" : tg_bus_fault(app->bus);
}

static bool daemon_ready(struct tg_app *app, const char **out_why)
{
    const char *why = "";
    bool ready = app->spec->ready == NULL || app->spec->ready(app->spec->context, &why);
    *out_why = ready ? "" : why != NULL && why[0] != '\0' ? why : "not ready";
    return ready;
}

bool app_is_ready(struct tg_app *app, const char **out_why)
{
    *out_why = phase_why(app->phase);
    if (app->phase != APP_RUNNING) {
        return false;
    }
    *out_why = bus_fault(app);
    if ((*out_why)[0] != '\0') {
        return false;
    }
    return daemon_ready(app, out_why);
}

static void answer(struct tg_http_exchange *exchange, int status, const char *content_type,
                   const char *body)
{
    const struct tg_http_answer answer = {.status = status,
                                          .content_type = content_type,
                                          .headers = "Cache-Control: no-store\r\n",
                                          .body = body,
                                          .body_length = strlen(body)};
    tg_http_answer(exchange, &answer);
}

static void answer_text(struct tg_http_exchange *exchange, int status, const char *body)
{
    answer(exchange, status, "text/plain; charset=utf-8", body);
}

/* One line a check, as operators know them from Kubernetes components. */
static void answer_verbose(struct tg_app *app, struct tg_http_exchange *exchange)
{
    char body[VERBOSE_BYTES];
    const char *why = "";
    const char *daemon_why = "not asked";
    bool running = app->phase == APP_RUNNING;
    bool daemon = running && daemon_ready(app, &daemon_why);
    const char *fault = bus_fault(app);
    bool bus = fault[0] == '\0';
    bool ready = app_is_ready(app, &why);
    snprintf(body, sizeof(body), "[%c]lifecycle %s\n[%c]bus %s\n[%c]%s %s\nreadyz check %s\n",
             running ? '+' : '-', running ? "running" : phase_why(app->phase), bus ? '+' : '-',
             bus ? "ok" : fault, daemon ? '+' : '-', app->spec->name, daemon ? "ok" : daemon_why,
             ready ? "passed" : "failed");
    answer_text(exchange, ready ? 200 : 503, body);
}

static void answer_ready(struct tg_app *app, struct tg_http_exchange *exchange)
{
    const char *query = tg_http_query(exchange);
    if (strcmp(query, "verbose") == 0 || strncmp(query, "verbose=", 8) == 0) {
        answer_verbose(app, exchange);
        return;
    }
    const char *why = "";
    char body[VERBOSE_BYTES];
    bool ready = app_is_ready(app, &why);
    snprintf(body, sizeof(body), "%s%s\n", ready ? "ok" : "not ready: ", why);
    answer_text(exchange, ready ? 200 : 503, body);
}

/* Resident pages are the second number of statm (proc(5)). */
static double resident_bytes(void)
{
    unsigned long total = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) {
        return 0;
    }
    int found = fscanf(file, "%lu %lu", &total, &resident);
    fclose(file);
    return found == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) : 0;
}

static void measure_process(struct tg_app *app)
{
    const char *why = "";
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        double seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        tg_metric_set(TG_METRIC_PROCESS_CPU, "", seconds);
    }
    tg_metric_set(TG_METRIC_READY, "", app_is_ready(app, &why) ? 1 : 0);
    tg_metric_set(TG_METRIC_PROCESS_MEMORY, "", resident_bytes());
    if (!app->spec->without_bus) {
        tg_metric_set(TG_METRIC_BUS_CONNECTED, "", bus_fault(app)[0] == '\0' ? 1 : 0);
    }
}

static void answer_metrics(struct tg_app *app, struct tg_http_exchange *exchange)
{
    measure_process(app);
    char *text = tg_metrics_text();
    if (text == NULL) {
        answer_text(exchange, 503, "out of memory\n");
        return;
    }
    answer(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", text);
    free(text);
}

static void handle(void *context, struct tg_http_exchange *exchange)
{
    struct tg_app *app = context;
    enum tg_http_method method = tg_http_method(exchange);
    const char *path = tg_http_path(exchange);
    if (method != TG_HTTP_GET && method != TG_HTTP_HEAD) {
        const struct tg_http_answer refusal = {.status = 405, .headers = "Allow: GET, HEAD\r\n"};
        tg_http_answer(exchange, &refusal);
    } else if (strcmp(path, "/livez") == 0) {
        answer_text(exchange, 200, "ok\n");
    } else if (strcmp(path, "/readyz") == 0) {
        answer_ready(app, exchange);
    } else if (strcmp(path, "/metrics") == 0) {
        answer_metrics(app, exchange);
    } else {
        answer_text(exchange, 404, "see /livez, /readyz?verbose and /metrics\n");
    }
}

int app_admin_open(struct tg_app *app)
{
    const struct tg_http_spec spec = {.host = app->settings.admin_host,
                                      .port = (uint16_t)app->settings.admin_port,
                                      .connections_max = ADMIN_CONNECTIONS,
                                      .handler = handle,
                                      .context = app};
    return tg_http_listen(&app->loop, &spec, &app->admin);
}
