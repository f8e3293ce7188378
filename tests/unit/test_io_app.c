/* SPDX-License-Identifier: Apache-2.0
 * The lifecycle, seen from outside: a child process runs tg_app_main, its log and admin port are
 * looked at. */
#include "lib/io/app.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT_BYTES = 16384, DEADLINE_MS = 10000 };

/* What the child's daemon does; set before it is started. */
static struct {
    bool never_ready;
    size_t busy_polls; /* how often it says busy once draining */
    bool fails_in_start;
    bool fails_running;
    bool hung_up_while_stopping;
} plan;
static bool stopped;

struct child {
    pid_t pid;
    int log;
    char text[TEXT_BYTES]; /* its log so far */
    size_t length;
    int port;
};

static struct tg_app *the_app;

static void fail_later(void *context)
{
    tg_app_fail(the_app, "sample.broke", TG_ERR_STORE);
}

static int on_reload(void *context)
{
    tg_log(TG_LOG_INFO, stopped ? "sample.reloaded_once_stopped" : "sample.reloaded");
    return 0;
}

static int on_start(struct tg_app *app, void *context)
{
    the_app = app;
    int error = tg_app_on_reload(app, on_reload, NULL);
    if (error != 0) {
        return error;
    }
    if (plan.fails_running) {
        return tg_app_every(app, 50, fail_later, NULL);
    }
    return plan.fails_in_start ? TG_ERR_STORE : 0;
}

static bool on_ready(void *context, const char **out_why)
{
    *out_why = "the store is away";
    return !plan.never_ready;
}

static void on_drain(void *context)
{
    tg_log(TG_LOG_INFO, "sample.drain");
}

static size_t on_busy(void *context)
{
    if (plan.busy_polls == 0) {
        return 0;
    }
    plan.busy_polls--;
    return 1;
}

static void on_stop(void *context)
{
    tg_log(TG_LOG_INFO, "sample.stop", TG_NUMBER_FIELD("busy_polls_left", plan.busy_polls));
    stopped = true;
    if (plan.hung_up_while_stopping) {
        raise(SIGHUP);
    }
}

static const struct tg_app_spec spec = {
    .name = "sample",
    .summary = "a daemon for tests.",
    .start = on_start,
    .ready = on_ready,
    .drain = on_drain,
    .busy = on_busy,
    .stop = on_stop,
    .without_bus = true,
};

/* Runs tg_app_main in a child; standard output and error go to child->log. */
static void launch(struct child *child, const char *option)
{
    int ends[2];
    memset(child, 0, sizeof(*child));
    assert_int_equal(pipe(ends), 0);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        char name[] = "tidegate-sample";
        char argument[64];
        snprintf(argument, sizeof(argument), "%s", option != NULL ? option : "");
        char *arguments[] = {name, option != NULL ? argument : NULL, NULL};
        dup2(ends[1], STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        int code = tg_app_main(option != NULL ? 2 : 1, arguments, &spec);
        fflush(stdout);
        _exit(code);
    }
    close(ends[1]);
    child->log = ends[0];
}

/* Reads on until the text is there, or fails after the deadline. */
static void expect_log(struct child *child, const char *text)
{
    while (strstr(child->text, text) == NULL) {
        struct pollfd wait = {.fd = child->log, .events = POLLIN};
        ssize_t got = 0;
        if (poll(&wait, 1, DEADLINE_MS) == 1) {
            got = read(child->log, child->text + child->length, TEXT_BYTES - 1 - child->length);
        }
        if (got <= 0) {
            kill(child->pid, SIGKILL);
            fail_msg("no \"%s\" in: %s", text, child->text);
        }
        child->length += (size_t)got;
        child->text[child->length] = '\0';
    }
}

static void launch_and_wait(struct child *child)
{
    launch(child, NULL);
    expect_log(child, "\"admin_port\":");
    expect_log(child, "\"app.started\"");
    const char *port = strstr(child->text, "\"admin_port\":");
    child->port = (int)strtol(port + strlen("\"admin_port\":"), NULL, 10);
    assert_in_range(child->port, 1, 65535);
}

static int wait_for_exit(struct child *child)
{
    int status = 0;
    ssize_t got;
    while ((got = read(child->log, child->text + child->length, TEXT_BYTES - 1 - child->length)) >
           0) {
        child->length += (size_t)got;
        child->text[child->length] = '\0';
    }
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    close(child->log);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* One request to the child's admin port; the status, 0 when nobody answers. */
static int ask(const struct child *child, const char *request_line, char out_answer[TEXT_BYTES])
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)child->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char request[256];
    int status = 0;
    size_t length = 0;
    out_answer[0] = '\0';
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
        int size = snprintf(request, sizeof(request),
                            "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", request_line);
        ssize_t got = write(fd, request, (size_t)size);
        while (got > 0 && (got = read(fd, out_answer + length, TEXT_BYTES - 1 - length)) > 0) {
            length += (size_t)got;
        }
        out_answer[length] = '\0';
        status = length > 12 ? (int)strtol(out_answer + 9, NULL, 10) : 0;
    }
    close(fd);
    return status;
}

static int begin(void **state)
{
    memset(&plan, 0, sizeof(plan));
    unsetenv("TIDEGATE_DRAIN_LEAD");
    unsetenv("TIDEGATE_DRAIN_LIMIT");
    unsetenv("TIDEGATE_INSTANCE");
    unsetenv("TIDEGATE_ADMIN_PORT");
    unsetenv("TIDEGATE_LOG_LEVEL");
    return 0;
}

static void it_starts_serves_and_stops(void **state)
{
    struct child child;
    static char answer[TEXT_BYTES];
    plan.busy_polls = 3;
    launch_and_wait(&child);
    expect_log(&child, "\"app.ready\"");
    assert_int_equal(ask(&child, "GET /livez", answer), 200);
    assert_int_equal(ask(&child, "GET /readyz", answer), 200);
    assert_int_equal(ask(&child, "GET /readyz?verbose", answer), 200);
    assert_non_null(strstr(answer, "[+]sample ok\n"));
    assert_int_equal(ask(&child, "GET /metrics", answer), 200);
    assert_non_null(strstr(answer, "text/plain; version=0.0.4"));
    assert_non_null(strstr(answer, "\ntidegate_process_resident_memory_bytes "));
    assert_non_null(strstr(answer, "tidegate_loop_lag_seconds_count "));
    assert_int_equal(ask(&child, "HEAD /livez", answer), 200);
    assert_int_equal(ask(&child, "POST /livez", answer), 405);
    assert_int_equal(ask(&child, "GET /", answer), 404);
    kill(child.pid, SIGTERM);
    assert_int_equal(wait_for_exit(&child), 0);
    assert_non_null(strstr(child.text, "\"app.draining\""));
    assert_non_null(strstr(child.text, "\"sample.drain\""));
    assert_non_null(strstr(child.text, "\"busy_polls_left\":0"));
    assert_non_null(strstr(child.text, "\"app.stopped\""));
}

/* case-50: liveness depends on the process only; readiness on what it needs. */
static void case_50_not_ready_is_alive(void **state)
{
    struct child child;
    static char answer[TEXT_BYTES];
    plan.never_ready = true;
    launch_and_wait(&child);
    assert_int_equal(ask(&child, "GET /livez", answer), 200);
    assert_int_equal(ask(&child, "GET /readyz", answer), 503);
    assert_non_null(strstr(answer, "the store is away"));
    assert_int_equal(ask(&child, "GET /readyz?verbose", answer), 503);
    assert_non_null(strstr(answer, "[-]sample the store is away\n"));
    kill(child.pid, SIGINT);
    assert_int_equal(wait_for_exit(&child), 0);
    assert_null(strstr(child.text, "\"app.ready\""));
}

/* case-50: after SIGTERM it is not ready but serves on for the lead. */
static void case_50_the_lead_serves_on(void **state)
{
    struct child child;
    static char answer[TEXT_BYTES];
    setenv("TIDEGATE_DRAIN_LEAD", "1m", 1);
    launch_and_wait(&child);
    expect_log(&child, "\"app.ready\"");
    kill(child.pid, SIGTERM);
    expect_log(&child, "\"app.draining\"");
    assert_int_equal(ask(&child, "GET /livez", answer), 200);
    assert_int_equal(ask(&child, "GET /readyz", answer), 503);
    assert_non_null(strstr(answer, "draining"));
    assert_null(strstr(child.text, "\"sample.drain\""));
    kill(child.pid, SIGTERM); /* the second one: at once */
    assert_int_equal(wait_for_exit(&child), 128 + SIGTERM);
}

static void the_drain_is_bounded(void **state)
{
    struct child child;
    plan.busy_polls = SIZE_MAX;
    setenv("TIDEGATE_DRAIN_LIMIT", "1s", 1);
    launch_and_wait(&child);
    kill(child.pid, SIGTERM);
    assert_int_equal(wait_for_exit(&child), 0);
    assert_non_null(strstr(child.text, "\"app.flush_incomplete\""));
    assert_non_null(strstr(child.text, "\"sample.stop\""));
}

/* What keys were read into is given back by then. */
static void nothing_is_reloaded_once_it_stopped(void **state)
{
    struct child child;
    plan.hung_up_while_stopping = true;
    launch_and_wait(&child);
    kill(child.pid, SIGHUP);
    expect_log(&child, "\"sample.reloaded\"");
    kill(child.pid, SIGTERM);
    assert_int_equal(wait_for_exit(&child), 0);
    assert_non_null(strstr(child.text, "\"app.stopped\""));
    assert_null(strstr(child.text, "\"sample.reloaded_once_stopped\""));
}

/* A handle of our own that is left open keeps the process for a second. */
static void the_loop_ends_by_itself(void **state)
{
    struct child child;
    setenv("TIDEGATE_LOG_LEVEL", "debug", 1);
    launch_and_wait(&child);
    kill(child.pid, SIGTERM);
    assert_int_equal(wait_for_exit(&child), 0);
    assert_null(strstr(child.text, "\"app.handles_left_open\""));
}

static void a_failure_ends_with_a_code(void **state)
{
    struct child child;
    plan.fails_running = true;
    launch(&child, NULL);
    assert_int_equal(wait_for_exit(&child), EX_SOFTWARE);
    assert_non_null(strstr(child.text, "\"sample.broke\""));
    assert_non_null(strstr(child.text, "\"sample.drain\""));
    memset(&plan, 0, sizeof(plan));
    plan.fails_in_start = true;
    launch(&child, NULL);
    assert_int_equal(wait_for_exit(&child), EX_UNAVAILABLE);
    assert_non_null(strstr(child.text, "\"app.start_failed\""));
    assert_null(strstr(child.text, "\"app.started\""));
}

static void options_answer_and_exit(void **state)
{
    struct child child;
    launch(&child, "--help");
    assert_int_equal(wait_for_exit(&child), 0);
    assert_non_null(strstr(child.text, "TIDEGATE_SAMPLE_DRAIN_LEAD"));
    launch(&child, "--version");
    assert_int_equal(wait_for_exit(&child), 0);
    assert_non_null(strstr(child.text, "tidegate-sample " TG_VERSION));
    launch(&child, "--check-config");
    assert_int_equal(wait_for_exit(&child), 0);
    assert_non_null(strstr(child.text, "TIDEGATE_SAMPLE_DRAIN_LIMIT=10000ms"));
    launch(&child, "--no-such-option");
    assert_int_equal(wait_for_exit(&child), EX_USAGE);
    launch(&child, "stray");
    assert_int_equal(wait_for_exit(&child), EX_USAGE);
}

static void bad_settings_exit_78_before_any_socket(void **state)
{
    static const struct {
        const char *name, *value;
    } bad[] = {{"TIDEGATE_DRAIN_LEAD", "5"},
               {"TIDEGATE_ADMIN_PORT", "65536"},
               {"TIDEGATE_INSTANCE", "UPPER"},
               {"TIDEGATE_INSTANCE", "an-instance-name-that-is-too-long"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct child child;
        begin(NULL);
        setenv(bad[i].name, bad[i].value, 1);
        launch(&child, NULL);
        assert_int_equal(wait_for_exit(&child), EX_CONFIG);
        assert_non_null(strstr(child.text, bad[i].value));
        assert_null(strstr(child.text, "app.started"));
    }
}

static void the_healthcheck_asks_the_running_one(void **state)
{
    struct child child;
    struct child check;
    char port[16];
    launch(&check, "--healthcheck");
    assert_int_equal(wait_for_exit(&check), EXIT_FAILURE); /* no port is set */
    launch_and_wait(&child);
    expect_log(&child, "\"app.ready\"");
    snprintf(port, sizeof(port), "%d", child.port);
    setenv("TIDEGATE_ADMIN_PORT", port, 1);
    launch(&check, "--healthcheck");
    assert_int_equal(wait_for_exit(&check), EXIT_SUCCESS);
    assert_string_equal(check.text, "ok\n");
    kill(child.pid, SIGTERM);
    assert_int_equal(wait_for_exit(&child), 0);
    launch(&check, "--healthcheck");
    assert_int_equal(wait_for_exit(&check), EXIT_FAILURE);
}

int main(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, NULL) != 0) {
        return EXIT_FAILURE;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_starts_serves_and_stops, begin),
        cmocka_unit_test_setup(case_50_not_ready_is_alive, begin),
        cmocka_unit_test_setup(case_50_the_lead_serves_on, begin),
        cmocka_unit_test_setup(the_drain_is_bounded, begin),
        cmocka_unit_test_setup(nothing_is_reloaded_once_it_stopped, begin),
        cmocka_unit_test_setup(the_loop_ends_by_itself, begin),
        cmocka_unit_test_setup(a_failure_ends_with_a_code, begin),
        cmocka_unit_test_setup(options_answer_and_exit, begin),
        cmocka_unit_test_setup(bad_settings_exit_78_before_any_socket, begin),
        cmocka_unit_test_setup(the_healthcheck_asks_the_running_one, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
