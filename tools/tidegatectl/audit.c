/* SPDX-License-Identifier: Apache-2.0
 * audit tail: the log of every change of stock, as the ledger keeps it, each entry with the hash
 * that chains it to the one before. */
#include "lib/pure/number.h"
#include "lib/pure/reason.h"
#include "lib/pure/text.h"
#include "tools/tidegatectl/session.h"
#include "tools/tidegatectl/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LAST = 20, LAST_MAX = 1000000, ASK_EVERY_MS = 500, HASH_BYTES = 32, UNITS_BYTES = 1024 };

struct tail {
    const struct ctl_options *options;
    struct ctl_session session;
    const char *sale;
    uint64_t epoch, after; /* epoch 0: the present one, not yet known */
    uint32_t last;         /* of the first question */
};

static void units_text(const Tidegate__V1__GateLogEntry *entry, char out_text[UNITS_BYTES])
{
    size_t length = 0;
    out_text[0] = '\0';
    for (size_t i = 0; i < entry->n_units && length < UNITS_BYTES; i++) {
        length += (size_t)snprintf(out_text + length, UNITS_BYTES - length, "%s%u:%u",
                                   i > 0 ? "," : "", entry->units[i]->item, entry->units[i]->unit);
    }
}

static void print_entry(const struct tail *tail, const Tidegate__V1__GateLogEntry *entry)
{
    char at[CTL_VALUE_BYTES], units[UNITS_BYTES], source[128], hash[2 * HASH_BYTES + 1] = "";
    ctl_time_text(entry->at_ms, at);
    units_text(entry, units);
    ctl_printable(entry->source, strlen(entry->source), source, sizeof(source));
    if (entry->hash.len == HASH_BYTES) {
        tg_hex_encode(entry->hash.data, HASH_BYTES, hash);
    }
    if (tail->options->format == CTL_TABLE) {
        (void)printf("%8" PRIu64 "  %s  %-8s %s  units %s  stock %" PRId64 "  by %s  %.16s\n",
                     entry->sequence, at, entry->kind, entry->reservation_id, units,
                     entry->stock_after, source, hash);
        return;
    }
    ctl_print_document(tail->options->format,
                       json_pack("{s:I, s:I, s:s, s:s, s:s, s:s, s:I, s:s, s:s}", "epoch",
                                 (json_int_t)tail->epoch, "sequence", (json_int_t)entry->sequence,
                                 "at", at, "kind", entry->kind, "reservation",
                                 entry->reservation_id, "units", units, "stockAfter",
                                 (json_int_t)entry->stock_after, "source", source, "hash", hash));
}

static enum ctl_exit refused(const struct tail *tail, const char *code)
{
    const enum tg_reason reason = tg_reason_from_code(code);
    (void)fprintf(stderr, "tidegatectl: %s: %s\n", tail->sale,
                  reason < TG_REASON_COUNT ? tg_reason_row(reason)->detail : "unknown reason");
    return reason == TG_REASON_TRY_AGAIN ? CTL_UNREACHABLE : CTL_REFUSED;
}

/* One page after a sequence, of an epoch (0: the present one). */
static enum ctl_exit ask(struct tail *tail, uint64_t epoch, uint64_t after,
                         Tidegate__V1__AuditReply **out_page)
{
    Tidegate__V1__AuditRequest request = TIDEGATE__V1__AUDIT_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.sale = (char *)(uintptr_t)tail->sale;
    request.epoch = epoch;
    request.after = after;
    request.last = tail->last;
    const int error =
        ctl_session_ask(&tail->session, TG_MESSAGE_LEDGER_AUDIT, tail->sale, &request.base, &reply);
    if (error != 0) {
        ctl_session_explain(&tail->session, "ledger", error);
        return CTL_UNREACHABLE;
    }
    Tidegate__V1__AuditReply *page = (Tidegate__V1__AuditReply *)reply;
    if (page->reason[0] == '\0') {
        *out_page = page;
        return CTL_DONE;
    }
    const enum ctl_exit code = refused(tail, page->reason);
    tidegate__v1__audit_reply__free_unpacked(page, NULL);
    return code;
}

/* Everything that is stored of the epoch now. */
static enum ctl_exit catch_up(struct tail *tail)
{
    for (bool end = false; !end;) {
        Tidegate__V1__AuditReply *page = NULL;
        const enum ctl_exit code = ask(tail, tail->epoch, tail->after, &page);
        if (page == NULL) {
            return code;
        }
        tail->epoch = page->epoch;
        tail->last = 0;
        for (size_t i = 0; i < page->n_entries; i++) {
            print_entry(tail, page->entries[i]);
            tail->after = page->entries[i]->sequence;
        }
        end = page->end || page->n_entries == 0;
        tidegate__v1__audit_reply__free_unpacked(page, NULL);
    }
    return CTL_DONE;
}

/* After a rebuild another log goes on: the old one is read to its end before. */
static enum ctl_exit change_epoch(struct tail *tail)
{
    Tidegate__V1__AuditReply *present = NULL;
    enum ctl_exit code = ask(tail, 0, INT64_MAX, &present);
    if (present == NULL) {
        return code;
    }
    const uint64_t epoch = present->epoch;
    tidegate__v1__audit_reply__free_unpacked(present, NULL);
    if (epoch == tail->epoch) {
        return CTL_DONE;
    }
    code = catch_up(tail);
    (void)fprintf(stderr, "tidegatectl: %s: the gate was rebuilt: epoch %" PRIu64 "\n", tail->sale,
                  epoch);
    tail->epoch = epoch;
    tail->after = 0;
    return code == CTL_DONE ? catch_up(tail) : code;
}

static bool never(const void *context)
{
    (void)context;
    return false;
}

/* What is there, then what comes for `span_ms`. */
static enum ctl_exit follow(struct tail *tail, bool one_epoch, int64_t span_ms)
{
    enum ctl_exit code = catch_up(tail);
    if (code == CTL_DONE && tail->after == 0) {
        (void)fprintf(stderr, "tidegatectl: %s: nothing is logged in epoch %" PRIu64 "\n",
                      tail->sale, tail->epoch);
    }
    for (int64_t passed_ms = 0; code == CTL_DONE && passed_ms < span_ms;
         passed_ms += ASK_EVERY_MS) {
        if (fflush(stdout) != 0) {
            break; /* the reader is gone */
        }
        (void)ctl_session_until(&tail->session, never, NULL, ASK_EVERY_MS);
        code = catch_up(tail);
        if (code == CTL_DONE && !one_epoch) {
            code = change_epoch(tail);
        }
    }
    return code;
}

static bool take_number(const char *what, const char *text, uint64_t most, uint64_t *out_number)
{
    if (text == NULL) {
        return true;
    }
    if (tg_unsigned_parse(text, strlen(text), most, out_number) == 0) {
        return true;
    }
    (void)fprintf(stderr, "tidegatectl: %s: a number up to %" PRIu64 ", not \"%s\"\n", what, most,
                  text);
    return false;
}

enum ctl_exit ctl_audit_tail(const struct ctl_options *options,
                             const struct ctl_arguments *arguments)
{
    struct tail tail = {.options = options, .sale = arguments->positional[0]};
    uint64_t last = LAST;
    int64_t span_ms = 0;
    if (!ctl_sale_name(tail.sale) || !take_number("--last", arguments->last, LAST_MAX, &last) ||
        !take_number("EPOCH", arguments->count > 1 ? arguments->positional[1] : NULL, INT32_MAX,
                     &tail.epoch) ||
        (arguments->span != NULL &&
         !ctl_duration("--for", arguments->span, 1, INT64_C(7) * 24 * 3600 * 1000, &span_ms))) {
        return CTL_USAGE;
    }
    tail.last = (uint32_t)last;
    enum ctl_exit code = ctl_session_open(options, false, &tail.session);
    if (code == CTL_DONE) {
        code = follow(&tail, tail.epoch != 0, span_ms);
        ctl_session_close(&tail.session);
    }
    return code;
}
