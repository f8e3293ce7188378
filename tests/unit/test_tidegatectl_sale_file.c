/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "tools/tidegatectl/sale_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct ctl_sale_file file;
static char *said; /* what the last parse printed */

static int parse_bytes(const char *text, size_t length)
{
    size_t said_length = 0;
    free(said);
    said = NULL;
    FILE *errors = open_memstream(&said, &said_length);
    assert_non_null(errors);
    int error = ctl_sale_file_parse("sale.yaml", text, length, errors, &file);
    assert_int_equal(fclose(errors), 0);
    assert_true((error == 0) ==
                (said[0] == '\0')); /* a refusal always says why, a success nothing */
    return error;
}

static int parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

#define ITEM "items: [{sku: a, units: 10, price: 4900, currency: EUR}]\n"
#define OPENS "opensAt: 2026-12-01T10:00:00Z\n"
#define BASE "sale: demo\n" ITEM OPENS

static void expect_fault(const char *text, const char *fault)
{
    assert_int_equal(parse(text), TG_ERR_MALFORMED);
    if (strstr(said, fault) == NULL) {
        print_error("of <%s> it was said <%s>, expected <%s>\n", text, said, fault);
        fail();
    }
}

static void the_whole_form_is_read(void **state)
{
    static const char text[] =
        "sale: sku_991\n"
        "items:\n"
        "  - {sku: sku_991, units: 10000, price: 4900, currency: EUR}\n"
        "  - {sku: 'two', units: 1, price: 0, currency: EUR}\n"
        "opensAt: 2026-12-01T10:00:00Z\n"
        "policy: {order: fifo, beacon: none}\n"
        "limits: {perBuyer: 4, holdFor: 10m, grace: 30s, extendBy: 60s, extensions: 2}\n"
        "pace: {start: 1000/s, max: 5000/s, min: 10/s}\n"
        "proof: {everyMs: 1000, leaseFor: 3s}\n"
        "show: {remaining: bucketed}\n";
    assert_int_equal(parse(text), 0);
    const Tidegate__V1__SaleDefinition *definition = &file.definition;
    assert_string_equal(definition->sale, "sku_991");
    assert_int_equal(definition->n_items, 2);
    assert_string_equal(definition->items[0]->sku, "sku_991");
    assert_int_equal(definition->items[0]->units, 10000);
    assert_true(definition->items[0]->price_minor == 4900);
    assert_string_equal(definition->items[0]->currency, "EUR");
    assert_string_equal(definition->items[1]->sku, "two");
    assert_true(definition->opens_at_ms == 1796119200000);
    assert_string_equal(definition->order, "fifo");
    assert_int_equal(definition->limit_per_buyer, 4);
    assert_true(definition->hold_ms == 600000 && definition->grace_ms == 30000 &&
                definition->extend_ms == 60000);
    assert_int_equal(definition->extensions_max, 2);
    assert_true(definition->pace_start_milli == 1000000 && definition->pace_min_milli == 10000 &&
                definition->pace_max_milli == 5000000);
    assert_true(definition->proof_every_ms == 1000 && definition->proof_lease_ms == 3000);
    assert_true(definition->remaining_bucketed);
    assert_int_equal(definition->shards, 1);
    assert_true(definition->generation == 0);
}

static void what_is_left_out_has_its_default(void **state)
{
    assert_int_equal(parse(BASE), 0);
    assert_int_equal(file.definition.limit_per_buyer, 1);
    assert_true(file.definition.hold_ms == 600000 && file.definition.proof_lease_ms == 3000);
    assert_false(file.definition.remaining_bucketed);
    assert_int_equal(parse(BASE "limits: {holdFor: 5m}\n"), 0);
    assert_true(file.definition.hold_ms == 300000 && file.definition.grace_ms == 30000);
}

static void required_fields_are_named(void **state)
{
    expect_fault(ITEM OPENS, "sale.yaml:1: sale: missing");
    expect_fault("sale: demo\n" OPENS, "items: missing");
    expect_fault("sale: demo\n" ITEM, "opensAt: missing");
    expect_fault("sale: demo\nitems: [{units: 1, price: 1, currency: EUR}]\n" OPENS,
                 "sale.yaml:2: items[0].sku: missing");
}

static void numbers_are_plain_digits_in_range(void **state)
{
    static const char *const units[] = {"1e6",      "1e+06",
                                        "1_000",    "1,000",
                                        "0x10",     "010",
                                        "+5",       "-5",
                                        "0",        "1000001",
                                        "10.0",     "'10'",
                                        "\"10\"",   "ten",
                                        "null",     "~",
                                        "",         "true",
                                        "[10]",     "{a: 1}",
                                        ".inf",     "99999999999999999999",
                                        "!!int 10x"};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text),
                       "sale: demo\nitems:\n  - sku: a\n    units: %s\n    price: 1\n    currency: "
                       "EUR\n" OPENS,
                       units[i]);
        expect_fault(text, "sale.yaml:4: items[0].units: expected an integer from 1 to 1000000 in "
                           "plain digits, got ");
    }
    expect_fault(BASE "limits: {perBuyer: 65}\n",
                 "sale.yaml:4: limits.perBuyer: expected an integer from 1 to 64");
    expect_fault(BASE "limits: {perBuyer: 0}\n", "limits.perBuyer");
    expect_fault(BASE "proof: {everyMs: 1s}\n", "proof.everyMs");
    expect_fault("sale: demo\nitems: [{sku: a, units: 1, price: 49.00, currency: EUR}]\n" OPENS,
                 "items[0].price");
    expect_fault("sale: demo\nitems: [{sku: a, units: 1, price: -1, currency: EUR}]\n" OPENS,
                 "items[0].price");
}

static void texts_are_texts_for_yaml_too(void **state)
{
    static const char *const names[] = {"123", "1e6", "0x1f", "true", "null", "-5", "12-", "1E-3"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char text[256];
        bool is_text = strcmp(names[i], "12-") == 0;
        (void)snprintf(text, sizeof(text), "sale: %s\n" ITEM OPENS, names[i]);
        if (is_text) {
            assert_int_equal(parse(text), 0);
        } else {
            expect_fault(text, "put it in quotes");
        }
        (void)snprintf(text, sizeof(text), "sale: \"%s\"\n" ITEM OPENS, names[i]);
        assert_int_equal(parse(text), 0);
        assert_string_equal(file.definition.sale, names[i]);
    }
    static const char *const bad[] = {
        "a b",
        "a/b",
        "a.b",
        "\"\"",
        "'../x'",
        "\xc3\xa9",
        "[a]",
        "{a: b}",
        "\"a\\0b\"",
        "\"a\\nb\"",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "sale: %s\n" ITEM OPENS, bad[i]);
        expect_fault(text,
                     "sale.yaml:1: sale: expected a text of 1 to 64 of A-Z a-z 0-9 _ -, got ");
    }
}

static void keys_are_known_and_given_once(void **state)
{
    expect_fault(BASE "shards: 10\n",
                 "sale.yaml:4: shards: unknown key; expected one of: sale, items, opensAt");
    expect_fault(BASE "policy: {signUp: ticket}\n",
                 "policy.signUp: unknown key; expected one of: order, signIn, commitment, beacon");
    expect_fault(BASE "Limits: {}\n", "Limits: unknown key");
    expect_fault(BASE "limits: {perbuyer: 1}\n", "limits.perbuyer: unknown key");
    expect_fault(BASE "sale: other\n", "sale.yaml:4: sale: given twice");
    expect_fault(BASE "limits: {grace: 1s, grace: 2s}\n", "limits.grace: given twice");
    expect_fault(BASE "limits: {}\nlimits: {}\n", "limits: given twice");
    expect_fault(
        "sale: demo\nitems: [{sku: a, units: 1, units: 2, price: 1, currency: EUR}]\n" OPENS,
        "items[0].units: given twice");
    expect_fault(BASE "? [a]\n: 1\n", "unknown key");
    expect_fault(BASE "1: 1\n", "1: unknown key");
    expect_fault("<<: {sale: demo}\n" BASE, "<<: unknown key");
}

static void types_are_those_of_the_form(void **state)
{
    expect_fault("[]\n", "expected a mapping, got a list");
    expect_fault("sale\n", "expected a mapping, got sale");
    expect_fault(BASE "limits: []\n", "sale.yaml:4: limits: expected a mapping, got a list");
    expect_fault(BASE "limits: 1\n", "limits: expected a mapping, got 1");
    expect_fault(BASE "limits:\n", "limits: expected a mapping, got nothing");
    expect_fault("sale: demo\nitems: {sku: a}\n" OPENS, "items: expected a list of 1 to 32 items");
    expect_fault("sale: demo\nitems: []\n" OPENS, "items: expected a list of 1 to 32 items");
    expect_fault("sale: demo\nitems: [a]\n" OPENS, "items[0]: expected a mapping, got a");
}

static void durations_paces_times_and_choices(void **state)
{
    static const char *const durations[] = {"10", "10 m",  "10M", "1h30m", "1e3s",  "-1s",
                                            "0s", "999ms", "25h", "600",   "[10m]", "''"};
    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), BASE "limits: {holdFor: %s}\n", durations[i]);
        expect_fault(text, "sale.yaml:4: limits.holdFor: expected a duration with its unit");
    }
    static const char *const paces[] = {"1000",     "1000/m", "1e3/s", "0/s",  "-1/s",
                                        "100001/s", "1.5/s",  "/s",    "01/s", "1000 /s"};
    for (size_t i = 0; i < COUNT_OF(paces); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), BASE "pace: {start: %s}\n", paces[i]);
        expect_fault(text, "sale.yaml:4: pace.start: expected people per second");
    }
    expect_fault("sale: demo\n" ITEM "opensAt: 2026-12-01\n",
                 "sale.yaml:3: opensAt: expected a time with its zone");
    expect_fault("sale: demo\n" ITEM "opensAt: 2026-12-01T10:00:00\n",
                 "opensAt: expected a time with its zone");
    expect_fault("sale: demo\n" ITEM "opensAt: 1796119200\n",
                 "opensAt: expected a time with its zone");
    expect_fault(BASE "policy: {order: random}\n",
                 "policy.commitment: expected sha256: and 64 hex digits (tidegatectl draw new "
                 "SALE), got nothing");
    expect_fault(BASE "show: {remaining: yes}\n",
                 "show.remaining: expected exact or bucketed, got yes");
    expect_fault("sale: demo\nitems: [{sku: a, units: 1, price: 1, currency: eur}]\n" OPENS,
                 "items[0].currency: expected a currency");
    expect_fault("sale: demo\nitems: [{sku: a, units: 1, price: 1, currency: NO}]\n" OPENS,
                 "items[0].currency: expected a currency");
}

static void fields_fit_together(void **state)
{
    expect_fault(BASE "pace: {start: 5/s}\n", "pace: expected min <= start <= max");
    expect_fault(BASE "pace: {min: 10/s, start: 20/s, max: 15/s}\n",
                 "pace: expected min <= start <= max");
    expect_fault(BASE "proof: {everyMs: 2000, leaseFor: 3s}\n",
                 "proof.leaseFor: expected at least twice everyMs");
    expect_fault("sale: demo\nitems:\n  - {sku: a, units: 1, price: 1, currency: EUR}\n  - {sku: "
                 "a, units: 1, price: 1, currency: EUR}\n" OPENS,
                 "sale.yaml:4: items: sku a is given twice");
    expect_fault("sale: demo\nitems:\n  - {sku: a, units: 1, price: 1, currency: EUR}\n  - {sku: "
                 "b, units: 1, price: 1, currency: USD}\n" OPENS,
                 "sale.yaml:4: items: expected one currency");
}

static void every_fault_is_told_and_many_are_bounded(void **state)
{
    expect_fault("sale: a b\nitems: [{sku: a, units: 0, price: x, currency: E}]\nopensAt: now\n",
                 "sale.yaml:1: sale");
    assert_non_null(strstr(said, "items[0].units"));
    assert_non_null(strstr(said, "items[0].price"));
    assert_non_null(strstr(said, "items[0].currency"));
    assert_non_null(strstr(said, "opensAt"));
    char text[4096] = BASE;
    for (int i = 0; i < 50; i++) {
        size_t length = strlen(text);
        (void)snprintf(text + length, sizeof(text) - length, "key%d: 1\n", i);
    }
    expect_fault(text, "and 30 more");
}

static void what_is_no_yaml_is_refused_with_its_line(void **state)
{
    expect_fault("sale: demo\nitems: [\n", "no YAML");
    expect_fault("sale: \"demo\n", "no YAML");
    expect_fault("\tsale: demo\n", "no YAML");
    expect_fault("sale: \xff\n", "no YAML");
    expect_fault("", "expected a mapping with sale, items and opensAt, got nothing");
    expect_fault("# nothing\n", "got nothing");
    expect_fault(BASE "---\nsale: other\n", "sale.yaml:5: expected one document");
    expect_fault(BASE "--- [\n", "no YAML");
    expect_fault("sale: *unknown\n", "no YAML");
    assert_int_equal(parse_bytes("sale: de\0mo\n", 12), TG_ERR_MALFORMED);
}

static void sizes_and_depths_are_bounded(void **state)
{
    char *large = malloc(CTL_SALE_FILE_BYTES + 2);
    assert_non_null(large);
    memset(large, '[', CTL_SALE_FILE_BYTES + 1);
    assert_int_equal(parse_bytes(large, CTL_SALE_FILE_BYTES + 1), TG_ERR_MALFORMED);
    assert_non_null(strstr(said, "at most 65536 bytes"));
    assert_int_equal(parse_bytes(large, CTL_SALE_FILE_BYTES), TG_ERR_MALFORMED);
    free(large);
    char text[4096] = "sale: demo\n" OPENS "items:\n";
    for (int i = 0; i < 33; i++) {
        size_t length = strlen(text);
        (void)snprintf(text + length, sizeof(text) - length,
                       "  - {sku: s%d, units: 1, price: 1, currency: EUR}\n", i);
    }
    expect_fault(text, "items: expected a list of 1 to 32 items");
    /* an alias that contains itself, and one used in place of a section */
    expect_fault(BASE "limits: &a\n  grace: *a\n", "limits.grace");
    expect_fault(BASE "limits: &a [*a]\n", "limits: expected a mapping");
}

static void files_are_read(void **state)
{
    char path[] = "/tmp/tidegate-sale-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *out = fdopen(fd, "w");
    assert_non_null(out);
    assert_true(fputs(BASE, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(ctl_sale_file_read(path, stderr, &file), 0);
    assert_string_equal(file.definition.sale, "demo");
    assert_int_equal(remove(path), 0);
    FILE *null = fopen("/dev/null", "w");
    assert_non_null(null);
    assert_true(ctl_sale_file_read(path, null, &file) < 0);
    assert_true(ctl_sale_file_read("/tmp", null, &file) < 0);
    assert_int_equal(fclose(null), 0);
}

static void paces_of_the_command_line(void **state)
{
    uint64_t pace = 99;
    assert_int_equal(ctl_pace_parse("1000/s", &pace), 0);
    assert_true(pace == 1000000);
    assert_int_equal(ctl_pace_parse("0/s", &pace), 0);
    assert_true(pace == 0);
    static const char *const bad[] = {"",     "/s",   "1",    "1/",   "s",   "1e3/s",
                                      "+1/s", "-1/s", "1/s ", " 1/s", "1/m", "01/s"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(ctl_pace_parse(bad[i], &pace), TG_ERR_MALFORMED);
    }
    assert_int_equal(ctl_pace_parse("1000001/s", &pace), TG_ERR_RANGE);
    assert_int_equal(ctl_pace_parse("99999999999999999999999/s", &pace), TG_ERR_RANGE);
}

static int forget(void **state)
{
    free(said);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_form_is_read),
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(required_fields_are_named),
        cmocka_unit_test(numbers_are_plain_digits_in_range),
        cmocka_unit_test(texts_are_texts_for_yaml_too),
        cmocka_unit_test(keys_are_known_and_given_once),
        cmocka_unit_test(types_are_those_of_the_form),
        cmocka_unit_test(durations_paces_times_and_choices),
        cmocka_unit_test(fields_fit_together),
        cmocka_unit_test(every_fault_is_told_and_many_are_bounded),
        cmocka_unit_test(what_is_no_yaml_is_refused_with_its_line),
        cmocka_unit_test(sizes_and_depths_are_bounded),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(paces_of_the_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, forget);
}
