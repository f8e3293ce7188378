/* SPDX-License-Identifier: Apache-2.0
 * sale apply and sale plan: from the sale file to the ledger's judgement. */
#include "tools/tidegatectl/control.h"
#include "tools/tidegatectl/sale_file.h"
#include "tools/tidegatectl/state.h"

#include <string.h>

static struct ctl_sale_file file; /* one per process */

static const char *value_of(const struct ctl_line *lines, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(lines[i].name, name) == 0) {
            return lines[i].value;
        }
    }
    return NULL;
}

static void add_change(json_t *changes, const char *field, const char *from, const char *to)
{
    (void)json_array_append_new(
        changes, json_pack("{s:s, s:s?, s:s?}", "field", field, "from", from, "to", to));
}

/* The lines of both definitions side by side: [{"field", "from", "to"}], null where one has none.
 */
static json_t *compare(const Tidegate__V1__SaleDefinition *old,
                       const Tidegate__V1__SaleDefinition *new)
{
    static struct ctl_line old_lines[CTL_LINES_MAX];
    static struct ctl_line new_lines[CTL_LINES_MAX];
    json_t *changes = json_array();
    size_t old_count = old != NULL ? ctl_definition_lines(old, old_lines) : 0;
    size_t new_count = ctl_definition_lines(new, new_lines);
    for (size_t i = 0; i < new_count; i++) {
        const char *before = value_of(old_lines, old_count, new_lines[i].name);
        if (before == NULL || strcmp(before, new_lines[i].value) != 0) {
            add_change(changes, new_lines[i].name, before, new_lines[i].value);
        }
    }
    for (size_t i = 0; i < old_count; i++) {
        if (value_of(new_lines, new_count, old_lines[i].name) == NULL) {
            add_change(changes, old_lines[i].name, old_lines[i].value, NULL);
        }
    }
    return changes;
}

static void print_changes(const struct ctl_options *options, const json_t *changes)
{
    size_t index;
    json_t *change;
    json_array_foreach(changes, index, change)
    {
        const char *field = json_string_value(json_object_get(change, "field"));
        const char *from = json_string_value(json_object_get(change, "from"));
        const char *to = json_string_value(json_object_get(change, "to"));
        char mark = from == NULL ? '+' : to == NULL ? '-' : '~';
        (void)printf("  %s%c %-18s %s%s%s%s\n",
                     ctl_colour(options, mark == '+'   ? CTL_GREEN
                                         : mark == '-' ? CTL_RED
                                                       : CTL_YELLOW),
                     mark, field, from != NULL ? from : "",
                     from != NULL && to != NULL ? " -> " : "", to != NULL ? to : "",
                     ctl_colour(options, CTL_PLAIN));
    }
    if (json_array_size(changes) == 0) {
        (void)printf("  no difference\n");
    }
}

/* The difference to what the ledger has. */
static enum ctl_exit find_difference(const struct ctl_options *options, json_t **out_changes)
{
    struct ctl_session session;
    Tidegate__V1__SalesReply *known = NULL;
    enum ctl_exit code = ctl_session_open(options, false, &session);
    if (code != CTL_DONE) {
        return code;
    }
    code = ctl_session_sales(&session, file.sale, NULL, &known);
    if (code == CTL_DONE) {
        *out_changes =
            compare(known->n_definitions > 0 ? known->definitions[0] : NULL, &file.definition);
        tidegate__v1__sales_reply__free_unpacked(known, NULL);
    }
    ctl_session_close(&session);
    return code;
}

static struct ctl_wish wish_of(bool plan)
{
    return (struct ctl_wish){.verb = "apply",
                             .changes_name = "changes",
                             .sale = file.sale,
                             .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_APPLY,
                             .definition = &file.definition,
                             .plan = plan};
}

enum ctl_exit ctl_apply(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    if (arguments->dry_run) {
        return ctl_plan(options, arguments);
    }
    if (ctl_sale_file_read(arguments->file, stderr, &file) != 0) {
        return CTL_USAGE;
    }
    const struct ctl_wish wish = wish_of(false);
    return ctl_control(options, &wish);
}

enum ctl_exit ctl_plan(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    if (ctl_sale_file_read(arguments->file, stderr, &file) != 0) {
        return CTL_USAGE;
    }
    struct ctl_wish wish = wish_of(true);
    enum ctl_exit code = find_difference(options, &wish.changes);
    if (code != CTL_DONE) {
        return code;
    }
    if (options->format == CTL_TABLE) {
        print_changes(options, wish.changes);
    }
    code = ctl_control(options, &wish);
    json_decref(wish.changes);
    return code;
}
