/* SPDX-License-Identifier: Apache-2.0
 * Sale files: an accepted one is a definition the ledger accepts, and its digest survives the bus;
 * a refused one is told in a bounded number of lines that begin with the file's name. */
#include "tests/fuzz/fuzz.h"

#include "lib/io/sales.h"
#include "tools/tidegatectl/sale_file.h"

enum { SAID_BYTES = 65536 };

static void check_definition(const struct ctl_sale_file *file)
{
    char fault[256];
    uint8_t digest[TG_DIGEST_BYTES], again[TG_DIGEST_BYTES];
    size_t length = tidegate__v1__sale_definition__get_packed_size(&file->definition);
    uint8_t *packed = malloc(length + 1);
    HOLDS(packed != NULL && length <= TG_MAX_BUS_BODY_BYTES);
    HOLDS(tg_definition_check(&file->definition, fault, sizeof(fault)) == 0);
    tg_definition_digest(&file->definition, digest);
    HOLDS(tidegate__v1__sale_definition__pack(&file->definition, packed) == length);
    Tidegate__V1__SaleDefinition *definition =
        tidegate__v1__sale_definition__unpack(NULL, length, packed);
    HOLDS(definition != NULL && tg_definition_check(definition, fault, sizeof(fault)) == 0);
    tg_definition_digest(definition, again);
    HOLDS(memcmp(digest, again, sizeof(digest)) == 0);
    tidegate__v1__sale_definition__free_unpacked(definition, NULL);
    free(packed);
}

static void check_sentences(const char *said)
{
    unsigned lines = 0;
    for (const char *line = said; *line != '\0'; lines++) {
        const char *end = strchr(line, '\n');
        HOLDS(end != NULL && strncmp(line, "sale.yaml:", 10) == 0);
        line = end + 1;
    }
    HOLDS(lines <= CTL_SALE_FILE_FAULTS_MAX + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct ctl_sale_file file;
    static char said[SAID_BYTES];
    memset(said, 0, sizeof(said));
    FILE *errors = fmemopen(said, sizeof(said) - 1, "w");
    HOLDS(errors != NULL);
    int error = ctl_sale_file_parse("sale.yaml", (const char *)bytes, size, errors, &file);
    (void)fclose(errors);
    HOLDS((error == 0) == (said[0] == '\0'));
    check_sentences(said);
    if (error == 0) {
        check_definition(&file);
    }
    return 0;
}
