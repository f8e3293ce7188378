/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/bus_inner.h"
#include "tidegate/v1/admission.pb-c.h"
#include "tidegate/v1/common.pb-c.h"
#include "tidegate/v1/control.pb-c.h"
#include "tidegate/v1/ledger.pb-c.h"
#include "tidegate/v1/queue.pb-c.h"
#include "tidegate/v1/reserve.pb-c.h"

#include <assert.h>

/* What the reply column names where there is none; never handed out. */
static const ProtobufCMessageDescriptor tidegate__v1__none__descriptor;

static struct bus_row rows[TG_MESSAGE_COUNT] = {
#define TG_MESSAGE(id, subject_text, kind_name, owner_name, request_name, reply_name, peers_text)  \
    [TG_MESSAGE_##id] = {.subject = (subject_text),                                                \
                         .kind = BUS_##kind_name,                                                  \
                         .owner = #owner_name,                                                     \
                         .request = &tidegate__v1__##request_name##__descriptor,                   \
                         .reply = &tidegate__v1__##reply_name##__descriptor},
#include "catalog/messages.def"
#undef TG_MESSAGE
};

static char labels[TG_MESSAGE_COUNT][64];

static void complete(struct bus_row *row, char label[static 64])
{
    const char *mark = strstr(row->subject, "%s");

    assert(strlen(row->subject) < 64);
    row->has_sale = mark != NULL;
    if (mark == NULL) {
        memcpy(label, row->subject, strlen(row->subject) + 1);
    } else {
        size_t before = (size_t)(mark - row->subject);
        memcpy(label, row->subject, before);
        label[before] = '*';
        memcpy(label + before + 1, mark + 2, strlen(mark + 2) + 1);
    }
    row->label = label;
    if (row->reply == &tidegate__v1__none__descriptor) {
        row->reply = NULL;
    }
}

const struct bus_row *bus_row(enum tg_message message)
{
    assert((unsigned)message < TG_MESSAGE_COUNT);
    if (rows[message].label == NULL) {
        complete(&rows[message], labels[message]);
    }
    return &rows[message];
}
