/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/cpu.h"

#include "lib/pure/number.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MAX = 65536, DEPTH_MAX = 8 };

struct process {
    int pid, parent;
    unsigned long long ticks; /* own and of children that have ended */
};

/* "pid (name) state ppid ... utime stime cutime cstime": fields 4 and 14-17 of proc(5); the name
 * may hold anything. */
static int read_process(const char *pid, struct process *out_process)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *after = strrchr(text, ')');
    unsigned long long ticks[4];
    int parent;
    if (after == NULL ||
        sscanf(after + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
               &parent, &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 5) {
        return -1;
    }
    *out_process = (struct process){.pid = (int)strtol(pid, NULL, 10),
                                    .parent = parent,
                                    .ticks = ticks[0] + ticks[1] + ticks[2] + ticks[3]};
    return 0;
}

static size_t read_processes(struct process *processes)
{
    size_t count = 0;
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    while (folder != NULL && count < PROCESSES_MAX && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
            read_process(entry->d_name, &processes[count]) == 0) {
            count++;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

static int parent_of(const struct process *processes, size_t count, int pid)
{
    for (size_t i = 0; i < count; i++) {
        if (processes[i].pid == pid) {
            return processes[i].parent;
        }
    }
    return 0;
}

static double seconds_of(const struct process *processes, size_t count, int root)
{
    unsigned long long ticks = 0;
    for (size_t i = 0; i < count; i++) {
        int pid = processes[i].pid;
        for (int depth = 0; depth < DEPTH_MAX && pid > 1 && pid != root; depth++) {
            pid = parent_of(processes, count, pid);
        }
        ticks += pid == root ? processes[i].ticks : 0;
    }
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static int read_pid(const char *run, const char *file)
{
    char path[PATH_MAX];
    char text[24] = "";
    int64_t pid = 0;
    if (snprintf(path, sizeof(path), "%s/pids/%s", run, file) >= (int)sizeof(path)) {
        return 0;
    }
    FILE *handle = fopen(path, "re");
    if (handle == NULL) {
        return 0;
    }
    size_t length = fread(text, 1, sizeof(text) - 1, handle);
    fclose(handle);
    text[length] = '\0';
    return tg_integer_parse(text, strcspn(text, "\n"), 2, INT_MAX, &pid) == 0 ? (int)pid : 0;
}

void rehearse_cpu_read(const char *run, struct rehearse_cpu *out_cpu)
{
    char path[PATH_MAX];
    out_cpu->count = 0;
    if (run[0] == '\0' || snprintf(path, sizeof(path), "%s/pids", run) >= (int)sizeof(path)) {
        return;
    }
    struct process *processes = calloc(PROCESSES_MAX, sizeof(*processes));
    DIR *folder = processes != NULL ? opendir(path) : NULL;
    size_t count = folder != NULL ? read_processes(processes) : 0;
    const struct dirent *entry;
    while (folder != NULL && out_cpu->count < REHEARSE_DAEMONS_MAX &&
           (entry = readdir(folder)) != NULL) {
        const char *ending = strstr(entry->d_name, ".pid");
        int pid = ending != NULL && ending[4] == '\0' ? read_pid(run, entry->d_name) : 0;
        size_t length = ending != NULL ? (size_t)(ending - entry->d_name) : 0;
        if (pid > 0 && length < REHEARSE_DAEMON_NAME_BYTES) {
            memcpy(out_cpu->daemons[out_cpu->count].name, entry->d_name, length);
            out_cpu->daemons[out_cpu->count].name[length] = '\0';
            out_cpu->daemons[out_cpu->count].seconds = seconds_of(processes, count, pid);
            out_cpu->count++;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    free(processes);
}

void rehearse_cpu_since(const struct rehearse_cpu *before, struct rehearse_cpu *after)
{
    for (size_t i = 0; i < after->count; i++) {
        for (size_t j = 0; j < before->count; j++) {
            bool same = strcmp(after->daemons[i].name, before->daemons[j].name) == 0;
            /* A daemon started anew counts from its start. */
            if (same && after->daemons[i].seconds >= before->daemons[j].seconds) {
                after->daemons[i].seconds -= before->daemons[j].seconds;
            }
        }
    }
}
