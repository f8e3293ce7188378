/* SPDX-License-Identifier: Apache-2.0
 * The NATS service protocol (ADR-32), answered by hand: PING, INFO and STATS, each plain, by name,
 * and by name and id. */
#include "lib/io/bus_inner.h"

#include <jansson.h>
#include <stdio.h>

static const char *const verbs[] = {"PING", "INFO", "STATS"};

static int serve_subject(struct tg_bus *bus, const char *verb, const char *tail)
{
    struct bus_subscription wanted = {.duty = BUS_DUTY_SERVICE, .verb = verb};

    if (snprintf(wanted.subject, sizeof(wanted.subject), "$SRV.%s%s", verb, tail) >=
        (int)sizeof(wanted.subject)) {
        return TG_ERR_RANGE;
    }
    return bus_subscribe(bus, &wanted, NULL);
}

int bus_service_open(struct tg_bus *bus)
{
    char by_name[80], by_id[120];
    int error = 0;

    snprintf(by_name, sizeof(by_name), ".tidegate-%s", bus->daemon);
    snprintf(by_id, sizeof(by_id), ".tidegate-%s.%s", bus->daemon, bus->instance);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]) && error == 0; i++) {
        error = serve_subject(bus, verbs[i], "");
        error = error != 0 ? error : serve_subject(bus, verbs[i], by_name);
        error = error != 0 ? error : serve_subject(bus, verbs[i], by_id);
    }
    return error;
}

static json_t *base(const struct tg_bus *bus, const char *type)
{
    char name[64];

    snprintf(name, sizeof(name), "tidegate-%s", bus->daemon);
    return json_pack("{s:s, s:s, s:s, s:s, s:{}}", "type", type, "name", name, "id", bus->instance,
                     "version", TG_VERSION, "metadata");
}

static json_t *endpoint(const struct bus_subscription *subscription, bool with_stats)
{
    const struct bus_row *row = bus_row(subscription->message);
    const struct bus_stats *stats = &subscription->stats;
    json_t *one = json_pack("{s:s, s:s, s:s*}", "name", row->label, "subject",
                            subscription->subject, "queue_group", subscription->queue);
    char name[64];
    size_t length = strlen(row->label);

    /* Endpoint names know no dots and no wildcards. */
    for (size_t i = 0; i <= length; i++) {
        name[i] = row->label[i] == '.' || row->label[i] == '*' ? '-' : row->label[i];
    }
    json_object_set_new(one, "name", json_string(name));
    if (with_stats) {
        uint64_t average = stats->requests == 0 ? 0 : stats->processing_us * 1000 / stats->requests;
        json_object_set_new(one, "num_requests", json_integer((json_int_t)stats->requests));
        json_object_set_new(one, "num_errors", json_integer((json_int_t)stats->errors));
        json_object_set_new(one, "last_error", json_string(stats->last_error));
        json_object_set_new(one, "processing_time",
                            json_integer((json_int_t)stats->processing_us * 1000));
        json_object_set_new(one, "average_processing_time", json_integer((json_int_t)average));
    } else {
        json_object_set_new(one, "metadata", json_object());
    }
    return one;
}

static json_t *endpoints(const struct tg_bus *bus, bool with_stats)
{
    json_t *list = json_array();

    for (size_t i = 0; i < bus->subscription_count; i++) {
        const struct bus_subscription *subscription = &bus->subscriptions[i];
        if (subscription->duty == BUS_DUTY_SERVE &&
            bus_row(subscription->message)->kind != BUS_PUBLISH) {
            json_array_append_new(list, endpoint(subscription, with_stats));
        }
    }
    return list;
}

static json_t *document(const struct tg_bus *bus, const char *verb)
{
    json_t *answer;
    char started[TG_RFC3339_BYTES] = "";

    if (strcmp(verb, "PING") == 0) {
        return base(bus, "io.nats.micro.v1.ping_response");
    }
    if (strcmp(verb, "INFO") == 0) {
        char summary[64];
        answer = base(bus, "io.nats.micro.v1.info_response");
        snprintf(summary, sizeof(summary), "Tidegate %s", bus->daemon);
        json_object_set_new(answer, "description", json_string(summary));
        json_object_set_new(answer, "endpoints", endpoints(bus, false));
        return answer;
    }
    answer = base(bus, "io.nats.micro.v1.stats_response");
    if (tg_wall_format(bus->started, started) == 0) {
        json_object_set_new(answer, "started", json_string(started));
    }
    json_object_set_new(answer, "endpoints", endpoints(bus, true));
    return answer;
}

void bus_service_answer(struct tg_bus *bus, const char *verb, natsMsg *message)
{
    struct bus_outgoing outgoing = {.subject = natsMsg_GetReply(message)};
    json_t *answer;
    char *text;

    if (outgoing.subject == NULL) {
        return;
    }
    answer = document(bus, verb);
    text = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    if (text == NULL) {
        return;
    }
    outgoing.data = text;
    outgoing.length = strlen(text);
    /* Unsent or too long: whoever asked asks again. */
    (void)!bus_send(bus, &outgoing);
    free(text);
}
