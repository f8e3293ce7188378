/* SPDX-License-Identifier: Apache-2.0
 * run/env of the one-machine stack: NAME=VALUE lines. Only the variables this tool reads are taken,
 * and only where the environment has none. */
#include "tools/tidegatectl/ctl.h"

#include <stdlib.h>
#include <string.h>

static const char *const wanted[] = {"TIDEGATE_NATS_URL", "TIDEGATE_NATS_KEYS",
                                     "TIDEGATE_NATS_CA",  "TIDEGATE_NATS_SERVER_NAME",
                                     "TIDEGATE_KEYS",     "TIDEGATE_LOGS"};

static void take_line(char *line)
{
    char *equals = strchr(line, '=');
    line[strcspn(line, "\r\n")] = '\0';
    if (equals == NULL) {
        return;
    }
    *equals = '\0';
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (strcmp(line, wanted[i]) == 0) {
            (void)setenv(wanted[i], equals + 1, 0);
        }
    }
}

void ctl_read_run_env(void)
{
    FILE *file = fopen("run/env", "re");
    if (file == NULL) {
        return;
    }
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) >= 0) {
        take_line(line);
    }
    free(line);
    (void)fclose(file);
}
