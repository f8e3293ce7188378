/* SPDX-License-Identifier: Apache-2.0
 * Signed commands: made, verified, and honoured in the view before anything else happens. */
#include "lib/io/sales_inner.h"

#include "lib/io/log.h"
#include "lib/io/now.h"
#include "lib/pure/reason.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_EVERY_MS = 1000, CAUSE_BYTES_MAX = 127 };

static bool id_valid(const char *id)
{
    uint8_t bytes[16];

    return tg_base32_id_decode(id, strlen(id), bytes) == 0;
}

static bool kind_known(Tidegate__V1__CommandKind kind)
{
    switch (kind) {
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_APPLY:
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_OPEN:
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE:
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_RESUME:
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_REBUILD:
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_CLOSE:
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PACE:
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_BEACON:
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_EXTEND:
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_UNSPECIFIED:
    case _TIDEGATE__V1__COMMAND_KIND_IS_INT_SIZE:
        break;
    }
    return false;
}

static int check(const Tidegate__V1__Command *command, const char *sale, struct tg_wall now)
{
    if (!id_valid(command->command_id) || !kind_known(command->kind) ||
        strcmp(command->sale, sale) != 0 || command->n_pause_ids > TG_MAX_PAUSES ||
        strlen(command->cause) > CAUSE_BYTES_MAX ||
        !tg_utf8_valid((const uint8_t *)command->cause, strlen(command->cause))) {
        return TG_ERR_MALFORMED;
    }
    for (size_t i = 0; i < command->n_pause_ids; i++) {
        if (!id_valid(command->pause_ids[i])) {
            return TG_ERR_MALFORMED;
        }
    }
    if (command->expires_at_ms < now.ms - TG_MAX_CLOCK_SKEW_MS ||
        command->expires_at_ms > now.ms + TG_MAX_COMMAND_LIFE_MS + TG_MAX_CLOCK_SKEW_MS) {
        return TG_ERR_RANGE;
    }
    return 0;
}

int tg_command_verify(const struct tg_verify_key *operator_key,
                      const struct tg_verify_key *invariant_key,
                      const Tidegate__V1__SignedCommand *signed_command, const char *sale,
                      struct tg_wall now, Tidegate__V1__Command **out_command)
{
    bool by_invariant = strcmp(signed_command->key_id, "invariant") == 0;
    const struct tg_verify_key *key = by_invariant ? invariant_key : operator_key;
    Tidegate__V1__Command *command;
    int error;

    if (!by_invariant && strcmp(signed_command->key_id, "operator") != 0) {
        return TG_ERR_FORGED;
    }
    if (signed_command->signature.len != crypto_sign_BYTES ||
        signed_command->command.len > TG_MAX_BUS_BODY_BYTES) {
        return TG_ERR_MALFORMED;
    }
    if (crypto_sign_verify_detached(signed_command->signature.data, signed_command->command.data,
                                    signed_command->command.len, key->public_key) != 0) {
        return TG_ERR_FORGED;
    }
    command = tidegate__v1__command__unpack(NULL, signed_command->command.len,
                                            signed_command->command.data);
    if (command == NULL) {
        return TG_ERR_MALFORMED;
    }
    error = check(command, sale, now);
    if (error == 0 && by_invariant &&
        command->kind != TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE) {
        error = TG_ERR_FORGED;
    }
    if (error != 0) {
        tidegate__v1__command__free_unpacked(command, NULL);
        return error;
    }
    *out_command = command;
    return 0;
}

int tg_command_sign(const struct tg_sign_key *key, const char *key_name,
                    const Tidegate__V1__Command *command, struct tg_signed_command *out_signed)
{
    size_t length = tidegate__v1__command__get_packed_size(command);
    uint8_t *bytes;

    if (length > TG_MAX_BUS_BODY_BYTES || strlen(key_name) >= sizeof(out_signed->key_id)) {
        return TG_ERR_RANGE;
    }
    bytes = malloc(length + 1); /* never nothing */
    if (bytes == NULL) {
        return -ENOMEM;
    }
    tidegate__v1__command__pack(command, bytes);
    tidegate__v1__signed_command__init(&out_signed->message);
    out_signed->command = bytes;
    snprintf(out_signed->key_id, sizeof(out_signed->key_id), "%s", key_name);
    crypto_sign_detached(out_signed->signature, NULL, bytes, length, key->secret);
    out_signed->message.command = (ProtobufCBinaryData){.len = length, .data = bytes};
    out_signed->message.key_id = out_signed->key_id;
    out_signed->message.signature =
        (ProtobufCBinaryData){.len = sizeof(out_signed->signature), .data = out_signed->signature};
    return 0;
}

void tg_command_free(struct tg_signed_command *signed_command)
{
    free(signed_command->command);
    signed_command->command = NULL;
    signed_command->message.command = (ProtobufCBinaryData){0};
}

void tg_command_new_id(char out_id[TG_BASE32_ID_LENGTH + 1])
{
    uint8_t id[16];

    tg_random(id, sizeof(id));
    tg_base32_id_encode(id, out_id);
}

static enum tg_reason reason_of(int error)
{
    if (error == TG_ERR_FORGED) {
        return TG_REASON_SIGNATURE_INVALID;
    }
    return error == TG_ERR_RANGE ? TG_REASON_COMMAND_EXPIRED : TG_REASON_MALFORMED;
}

/* Only the judge answers; the others stay silent, so that forged commands cannot make them speak.
 */
static void refuse(struct tg_sales *sales, struct tg_bus_incoming *take_incoming, int error)
{
    enum tg_reason reason = reason_of(error);
    struct tg_mono now = tg_now_mono();

    if (now.ms - sales->refusal_logged.ms >= LOG_EVERY_MS) {
        sales->refusal_logged = now;
        tg_log(TG_LOG_WARN, "control.refused", TG_TEXT_FIELD("sale", tg_bus_sale(take_incoming)),
               TG_TEXT_FIELD("reason", tg_reason_code(reason)));
    }
    if (sales->spec.on_judge != NULL && tg_bus_wants_reply(take_incoming)) {
        Tidegate__V1__CommandReply reply = TIDEGATE__V1__COMMAND_REPLY__INIT;
        reply.reason = (char *)(uintptr_t)tg_reason_code(reason);
        reply.detail = (char *)(uintptr_t)tg_reason_row(reason)->detail;
        tg_bus_reply(take_incoming, &reply.base);
        return;
    }
    tg_bus_release(take_incoming);
}

enum tg_reason sales_pause_take(struct sales_entry *entry, const Tidegate__V1__Command *command)
{
    uint64_t generation = command->generation == 0 ? UINT64_MAX : command->generation;

    if (generation < entry->sale.generation) {
        return TG_REASON_STALE_SEQUENCE; /* for an earlier sale of this name */
    }
    if (tg_sale_pause(&entry->sale, command->command_id, command->cause) != 0) {
        return TG_REASON_NOT_ALLOWED_NOW; /* TG_MAX_PAUSES are active already */
    }
    if (generation > entry->pause_generation) {
        entry->pause_generation = generation;
    }
    return TG_REASON_NONE;
}

static enum tg_reason honour(struct tg_sales *sales, struct sales_entry *entry,
                             const Tidegate__V1__Command *command)
{
    enum tg_reason reason =
        entry == NULL ? TG_REASON_SALE_UNKNOWN : sales_pause_take(entry, command);

    if (reason == TG_REASON_NONE) {
        sales_changed(sales, entry);
    }
    return reason;
}

static void acknowledge(struct tg_sales *sales, const Tidegate__V1__Command *command,
                        const char *effect, uint64_t received_us)
{
    Tidegate__V1__CommandAck ack = TIDEGATE__V1__COMMAND_ACK__INIT;

    ack.command_id = command->command_id;
    ack.sale = command->sale;
    ack.daemon = (char *)(uintptr_t)tg_app_name(sales->app);
    ack.instance = (char *)(uintptr_t)tg_app_instance(sales->app);
    ack.effect = (char *)(uintptr_t)effect;
    ack.took_us = tg_now_us() - received_us;
    if (tg_bus_publish(tg_app_bus(sales->app), TG_MESSAGE_CONTROL_ACK, command->sale, &ack.base) !=
        0) {
        tg_log(TG_LOG_WARN, "control.ack_unsent", TG_TEXT_FIELD("sale", command->sale));
    }
}

static void obey(struct tg_sales *sales, const Tidegate__V1__Command *command, uint64_t received_us)
{
    bool pause = command->kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE;
    enum tg_reason reason = TG_REASON_NONE;
    const char *effect = pause ? "honoured" : "noted", *own = NULL;
    char refused[64];

    if (command->plan) { /* for the judge alone: a plan of a pause pauses nobody */
        return;
    }
    if (pause) {
        reason = honour(sales, sales_entry_take(sales, command->sale), command);
    }
    if (reason != TG_REASON_NONE) {
        snprintf(refused, sizeof(refused), "refused:%s", tg_reason_code(reason));
        effect = refused;
    } else if (sales->spec.on_command != NULL) {
        own = sales->spec.on_command(sales->spec.context, tg_sales_find(sales, command->sale),
                                     command);
    }
    acknowledge(sales, command, own != NULL ? own : effect, received_us);
}

static void on_control(void *context, struct tg_bus_incoming *take_incoming)
{
    struct tg_sales *sales = context;
    uint64_t received_us = tg_now_us();
    const Tidegate__V1__SignedCommand *message =
        (const Tidegate__V1__SignedCommand *)tg_bus_body(take_incoming);
    Tidegate__V1__Command *command = NULL;
    int error = TG_ERR_FORGED;

    for (size_t i = 0; i < 3 && error == TG_ERR_FORGED; i++) {
        error = tg_command_verify(&sales->operator_keys[i], &sales->invariant_keys[i], message,
                                  tg_bus_sale(take_incoming), tg_now_wall(), &command);
    }

    if (error != 0) {
        refuse(sales, take_incoming, error);
        return;
    }
    if (sales->spec.on_judge == NULL ||
        !sales->spec.on_judge(sales->spec.context, take_incoming, command, message->key_id,
                              received_us)) {
        obey(sales, command, received_us);
        tg_bus_release(take_incoming);
    }
    tidegate__v1__command__free_unpacked(command, NULL);
}

int sales_command_listen(struct tg_sales *sales)
{
    return tg_bus_serve(tg_app_bus(sales->app), TG_MESSAGE_CONTROL, on_control, sales);
}
