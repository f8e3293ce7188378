/* SPDX-License-Identifier: Apache-2.0
 * Between protobuf and the ledger's own structs. What comes in is checked here, field by field,
 * before anything else sees it; what goes out is filled into storage of the caller. Single bad rows
 * of a page are left out (`out_dropped`), so that one cannot hold up the rest. No I/O. */
#ifndef LEDGER_WIRE_H
#define LEDGER_WIRE_H

#include "services/ledger/store.h"
#include "tidegate/v1/control.pb-c.h"
#include "tidegate/v1/ledger.pb-c.h"

/* Each: TG_REASON_NONE, or why nothing was taken. `sale` is the subject's. */
enum tg_reason ledger_wire_record(const Tidegate__V1__RecordRequest *request, const char *sale,
                                  struct ledger_hold *out_hold);
enum tg_reason ledger_wire_expire(const Tidegate__V1__ExpireRequest *request, const char *sale,
                                  struct ledger_expire *out_ask, uint32_t *out_dropped);
enum tg_reason ledger_wire_obeyed(const Tidegate__V1__ObeyedRequest *request, const char *sale,
                                  struct ledger_obeyed *out_ask, uint32_t *out_dropped);
enum tg_reason ledger_wire_due(const Tidegate__V1__LedgerDueRequest *request, const char *sale,
                               struct ledger_due_ask *out_ask);
enum tg_reason ledger_wire_snapshot(const Tidegate__V1__SnapshotRequest *request, const char *sale,
                                    struct ledger_snapshot_ask *out_ask);
enum tg_reason ledger_wire_audit(const Tidegate__V1__AuditRequest *request, const char *sale,
                                 struct ledger_audit_ask *out_ask);
enum tg_reason ledger_wire_incident(const Tidegate__V1__IncidentRequest *request, const char *sale,
                                    struct ledger_incident_ask *out_ask);
enum tg_reason ledger_wire_armed(const Tidegate__V1__ArmedRequest *request, const char *sale,
                                 struct ledger_armed *out_ask);
enum tg_reason ledger_wire_draw(const Tidegate__V1__DrawRequest *request, const char *sale,
                                struct ledger_draw_ask *out_ask);
enum tg_reason ledger_wire_check(const Tidegate__V1__AppendRequest *request, const char *sale,
                                 struct ledger_check *out_check);
/* Entries after `out_page->tail` only (the caller fills tail first); at most TG_MAX_PAGE. One bad
 * entry refuses the page. */
enum tg_reason ledger_wire_log(const Tidegate__V1__AppendRequest *request, const char *sale,
                               struct ledger_log_page *out_page);

/* The four verbs: everything but the credential, which is the caller's to judge. */
enum tg_reason ledger_wire_read(const Tidegate__V1__ReadRequest *request,
                                struct ledger_ask *out_ask);
enum tg_reason ledger_wire_confirm(const Tidegate__V1__ConfirmRequest *request,
                                   struct ledger_ask *out_ask);
enum tg_reason ledger_wire_extend(const Tidegate__V1__ExtendRequest *request,
                                  struct ledger_ask *out_ask);
enum tg_reason ledger_wire_cancel(const Tidegate__V1__CancelRequest *request,
                                  struct ledger_ask *out_ask);

/* A verified command. out_fault: TG a sentence for the operator when refused. Borrows the signed
 * bytes. */
enum tg_reason ledger_wire_command(const Tidegate__V1__Command *command,
                                   const Tidegate__V1__SignedCommand *signed_command,
                                   const char *key_id, struct ledger_command *out_command,
                                   char out_fault[LEDGER_DETAIL_BYTES]);

/* Storage of messages that are being filled; belongs to the shell, used within one call. */
struct ledger_wire_units {
    Tidegate__V1__UnitRef rows[TG_MAX_UNITS_PER_HOLD];
    Tidegate__V1__UnitRef *list[TG_MAX_UNITS_PER_HOLD];
};
/* Returns the list of `count` units. */
Tidegate__V1__UnitRef **ledger_wire_units(struct ledger_wire_units *storage,
                                          const struct tg_unit_ref *units, uint32_t count);

struct ledger_wire_sale {
    Tidegate__V1__SaleDefinition definition;
    Tidegate__V1__SaleState state;
    Tidegate__V1__ItemDefinition items[TG_MAX_ITEMS_PER_SALE];
    Tidegate__V1__ItemDefinition *item_list[TG_MAX_ITEMS_PER_SALE];
    Tidegate__V1__PauseEntry pauses[TG_MAX_PAUSES];
    Tidegate__V1__PauseEntry *pause_list[TG_MAX_PAUSES];
    char *lifted[TG_MAX_LIFTED];
    uint8_t digest[TG_DIGEST_BYTES];
    Tidegate__V1__Draw draw;
};
/* Definition and state; they borrow `storage` and `sale`. */
void ledger_wire_sale(struct ledger_wire_sale *storage, const struct ledger_sale *sale);

#endif
