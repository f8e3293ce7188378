/* SPDX-License-Identifier: Apache-2.0
 * A PostgreSQL of a test's own, on a unix socket in a temporary folder. One per program. */
#ifndef TG_TESTS_PRIVATE_POSTGRES_H
#define TG_TESTS_PRIVATE_POSTGRES_H

#include "tests/unit/cmocka_tests.h"

#include <glob.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char private_folder[] = "/tmp/tidegate-pg-XXXXXX";
static char private_bin[256];
static char private_conninfo[128];

static pid_t private_server;

static inline pid_t private_spawn(char *command)
{
    char shell[] = "sh", option[] = "-c";
    char *const argv[] = {shell, option, command, NULL};
    pid_t pid;
    assert_int_equal(posix_spawnp(&pid, shell, NULL, NULL, argv, environ), 0);
    return pid;
}

static inline int private_result(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

/* A program of PostgreSQL, as the user postgres when we are root: it refuses to run as root. It
 * quits when we end, however we end. */
static inline pid_t private_program(const char *program, const char *arguments)
{
    char command[1024];
    snprintf(command, sizeof command,
             "cd / && exec setpriv %s --pdeathsig QUIT -- %s/%s %s >>%s/log 2>&1",
             geteuid() == 0 ? "--reuid postgres --regid postgres --init-groups" : "", private_bin,
             program, arguments, private_folder);
    return private_spawn(command);
}

static inline void private_postgres_start(void)
{
    enum { LOOKS = 1200, LOOK_MS = 50 };
    char arguments[512];
    snprintf(arguments, sizeof arguments, "-D %s/data -k %s -c listen_addresses=''", private_folder,
             private_folder);
    private_server = private_program("postgres", arguments);
    snprintf(arguments, sizeof arguments, "-h %s", private_folder);
    for (int i = 0; private_result(private_program("pg_isready", arguments)) != 0; i++) {
        assert_true(i < LOOKS);
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static inline void private_postgres_stop(void)
{
    assert_int_equal(kill(private_server, SIGQUIT), 0);
    assert_int_equal(waitpid(private_server, NULL, 0), private_server);
}

/* Makes the cluster and starts it; private_conninfo leads to it as its owner. */
static inline void private_postgres_make(void)
{
    glob_t found;
    char arguments[256];
    assert_non_null(mkdtemp(private_folder));
    assert_int_equal(glob("/usr/lib/postgresql/*/bin", 0, NULL, &found), 0);
    snprintf(private_bin, sizeof private_bin, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    if (geteuid() == 0) {
        const struct passwd *user = getpwnam("postgres");
        assert_non_null(user);
        assert_int_equal(chown(private_folder, user->pw_uid, user->pw_gid), 0);
    }
    snprintf(arguments, sizeof arguments,
             "-D %s/data -A trust -E UTF8 --locale=C -U owner --no-sync", private_folder);
    assert_int_equal(private_result(private_program("initdb", arguments)), 0);
    private_postgres_start();
    snprintf(private_conninfo, sizeof private_conninfo, "host=%s dbname=postgres user=owner",
             private_folder);
}

static inline void private_postgres_remove(void)
{
    char command[64];
    private_postgres_stop();
    snprintf(command, sizeof command, "rm -rf %s", private_folder);
    assert_int_equal(private_result(private_spawn(command)), 0);
}

#endif
