/* SPDX-License-Identifier: Apache-2.0
 * Every message of the catalogue as a body from the bus: unpacking stays within its memory, and
 * what was unpacked packs to bytes that unpack and pack to themselves. */
#include "tests/fuzz/fuzz_message.h"

#include "tidegate/v1/admission.pb-c.h"
#include "tidegate/v1/control.pb-c.h"
#include "tidegate/v1/ledger.pb-c.h"
#include "tidegate/v1/queue.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"

enum { OPEN_MAX = 65536 }; /* more parts than a body can have */

/* Fields of another version are not ours to send on: they are taken out, in every part. */
static void forget_unknown_fields(ProtobufCMessage *whole)
{
    static ProtobufCMessage *open[OPEN_MAX];
    size_t count = 0;
    open[count++] = whole;
    while (count > 0) {
        ProtobufCMessage *message = open[--count];
        message->n_unknown_fields = 0;
        for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
            const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
            void *member = (char *)message + field->offset;
            if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
                continue;
            }
            bool many = field->label == PROTOBUF_C_LABEL_REPEATED;
            size_t parts = 1;
            ProtobufCMessage **list = (ProtobufCMessage **)member;
            if (many) {
                memcpy(&parts, (char *)message + field->quantifier_offset, sizeof(parts));
                memcpy((void *)&list, member, sizeof(list));
            }
            for (size_t j = 0; j < parts; j++) {
                HOLDS(count < OPEN_MAX);
                if (list[j] != NULL) {
                    open[count++] = list[j];
                }
            }
        }
    }
}

static void packs_to_itself(const ProtobufCMessage *message)
{
    forget_unknown_fields((ProtobufCMessage *)(uintptr_t)message);
    size_t length = protobuf_c_message_get_packed_size(message);
    uint8_t *first = malloc(length + 1), *second = malloc(length + 1);
    HOLDS(first != NULL && second != NULL && length <= TG_MAX_BUS_DECODED_BYTES);
    HOLDS(protobuf_c_message_pack(message, first) == length);
    ProtobufCMessage *again = protobuf_c_message_unpack(message->descriptor, NULL, length, first);
    HOLDS(again != NULL && protobuf_c_message_get_packed_size(again) == length);
    HOLDS(protobuf_c_message_pack(again, second) == length && memcmp(first, second, length) == 0);
    protobuf_c_message_free_unpacked(again, NULL);
    free(first);
    free(second);
}

#define ROW(snake) FUZZ_MESSAGE(snake, packs_to_itself)

static const struct fuzz_message kinds[] = {
    ROW(lease_request),
    ROW(lease_reply),
    ROW(presence),
    ROW(board),
    ROW(pass_request),
    ROW(pass_reply),
    ROW(pace),
    ROW(load),
    ROW(stock),
    ROW(hold_request),
    ROW(hold_reply),
    ROW(obey_request),
    ROW(obey_reply),
    ROW(gate_due_request),
    ROW(gate_due_reply),
    ROW(attest_request),
    ROW(attest_reply),
    ROW(trim_request),
    ROW(trim_reply),
    ROW(record_request),
    ROW(record_reply),
    ROW(expire_request),
    ROW(expire_reply),
    ROW(obeyed_request),
    ROW(obeyed_reply),
    ROW(ledger_due_request),
    ROW(ledger_due_reply),
    ROW(snapshot_request),
    ROW(snapshot_reply),
    ROW(armed_request),
    ROW(armed_reply),
    ROW(append_request),
    ROW(append_reply),
    ROW(read_request),
    ROW(confirm_request),
    ROW(extend_request),
    ROW(cancel_request),
    ROW(reservation_reply),
    ROW(sales_request),
    ROW(sales_reply),
    ROW(sale_state),
    ROW(signed_command),
    ROW(command_reply),
    ROW(command_ack),
    ROW(command),
    ROW(sale_event),
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return fuzz_message_run(kinds, COUNT_OF(kinds), bytes, size);
}
