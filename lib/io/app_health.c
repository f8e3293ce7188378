/* SPDX-License-Identifier: Apache-2.0
 * --healthcheck: a process of its own that asks a running daemon over its admin port, for container
 * runtimes without curl. It blocks, with deadlines; no daemon calls it. */
#include "lib/io/app_parts.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 2048, DEADLINE_S = 2 };

/* The address to ask: what listens everywhere is asked on the loopback of IPv4, which is there also
 * where a container has no IPv6; "::" hears both. */
static const char *host_to_ask(const char *host)
{
    const bool everywhere = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    return everywhere ? "127.0.0.1" : host;
}

static int connect_to(const char *host, int64_t port)
{
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    snprintf(service, sizeof(service), "%u", (unsigned)(uint16_t)port);
    if (getaddrinfo(host_to_ask(host), service, &hints, &found) != 0) {
        return -1;
    }
    const struct timeval deadline = {.tv_sec = DEADLINE_S};
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        bool timed = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)) == 0 &&
                     setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof(deadline)) == 0;
        if (!timed || connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* Sends the question, reads until the end; false when there was no whole answer in time. */
static bool ask(int fd, char out_answer[ANSWER_BYTES])
{
    static const char question[] =
        "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    if (send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(question) - 1) {
        return false;
    }
    size_t length = 0;
    while (length < ANSWER_BYTES - 1) {
        ssize_t got = recv(fd, out_answer + length, ANSWER_BYTES - 1 - length, 0);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
    }
    out_answer[length] = '\0';
    return strncmp(out_answer, "HTTP/1.1 ", 9) == 0;
}

int app_health(const struct tg_common_settings *settings)
{
    if (settings->admin_port == 0) {
        fprintf(stderr, "set an admin port to use --healthcheck: 0 means any free one\n");
        return EXIT_FAILURE;
    }
    int fd = connect_to(settings->admin_host, settings->admin_port);
    char text[ANSWER_BYTES];
    bool answered = fd >= 0 && ask(fd, text);
    if (fd >= 0) {
        close(fd);
    }
    if (!answered) {
        fprintf(stderr, "no answer from the admin port\n");
        return EXIT_FAILURE;
    }
    const char *body = strstr(text, "\r\n\r\n");
    fputs(body != NULL ? body + 4 : "\n", stdout);
    return strncmp(text + 9, "200 ", 4) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
