/* SPDX-License-Identifier: Apache-2.0
 * main() of a harness without libFuzzer: every file of its corpus as it is, then each with fixed
 * damage, so that a plain build still goes off the beaten track. Ends like a cmocka program. A file
 * that fails is the last one named. With arguments: runs those files only. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>

enum { FILE_BYTES_MAX = 65536, FILES_MAX = 256, DAMAGED_RUNS = 64 };

static char paths[FILES_MAX][1024];
static uint8_t bytes[FILE_BYTES_MAX];

static int by_name(const void *left, const void *right)
{
    return strcmp(left, right);
}

static size_t list_files(const char *folder)
{
    size_t count = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry = listing != NULL ? readdir(listing) : NULL; entry != NULL;
         entry = readdir(listing)) {
        if (entry->d_name[0] != '.' && count < FILES_MAX) {
            (void)snprintf(paths[count++], sizeof(paths[0]), "%s/%s", folder, entry->d_name);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    qsort(paths, count, sizeof(paths[0]), by_name);
    return count;
}

static bool read_file(const char *path, size_t *out_length)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return false;
    }
    *out_length = fread(bytes, 1, sizeof(bytes), file);
    bool whole = feof(file) != 0;
    (void)fclose(file);
    return whole;
}

/* A run on a copy of exactly this size: reading behind its end is seen by the address sanitizer. */
static void run(const uint8_t *data, size_t length)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);
    assert(copy != NULL);
    if (length > 0) {
        memcpy(copy, data, length);
    }
    (void)LLVMFuzzerTestOneInput(copy, length);
    free(copy);
}

static void run_damaged(size_t length, uint64_t seed)
{
    static uint8_t damaged[FILE_BYTES_MAX];
    uint8_t choices[64];
    choice_fill(seed, choices, sizeof(choices));
    struct choice choice = {choices, sizeof(choices), 0};
    size_t damaged_length = length;
    memcpy(damaged, bytes, length);
    choice_damage(&choice, (char *)damaged, &damaged_length, sizeof(damaged));
    run(damaged, damaged_length);
}

static int replay(const char *path)
{
    size_t length = 0;
    const char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    printf("[ RUN      ] %s\n", name);
    (void)fflush(stdout);
    if (!read_file(path, &length)) {
        printf("[  FAILED  ] 1 test(s): %s is not readable, or too large\n", path);
        return 1;
    }
    run(bytes, length);
    for (uint64_t seed = 1; seed <= DAMAGED_RUNS; seed++) {
        run_damaged(length, seed);
    }
    printf("[       OK ] %s\n", name);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    size_t count = argc > 1 ? (size_t)argc - 1 : list_files(TG_FUZZ_CORPUS);
    printf("[==========] Running %zu test(s).\n", count);
    run(bytes, 0);
    for (size_t i = 0; i < count; i++) {
        failed += replay(argc > 1 ? argv[i + 1] : paths[i]);
    }
    if (count == 0) {
        printf("[  FAILED  ] 1 test(s): %s has no files\n", TG_FUZZ_CORPUS);
        return 1;
    }
    printf("[  PASSED  ] %zu test(s).\n", count - (size_t)failed);
    return failed != 0;
}
