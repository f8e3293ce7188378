/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ledger/migrate.h"

#include "lib/pure/identity.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_FAILED = 1, EXIT_REFUSED = 78, DIGEST_BYTES = 32 };

#define LEDGER_MIGRATION(number, file, symbol) extern const char symbol[];
#include "migrations.inc"
#undef LEDGER_MIGRATION

struct migration {
    uint32_t version;
    const char *file;
    const char *sql;
};

static const struct migration migrations[] = {
#define LEDGER_MIGRATION(number, file, symbol) {number, file, symbol},
#include "migrations.inc"
#undef LEDGER_MIGRATION
};
enum { MIGRATION_COUNT = sizeof migrations / sizeof migrations[0] };

/* The lock's key is of no meaning; it only has to be the same in every copy of this program. */
static const char begin_sql[] =
    "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('tidegate.migrate', 0)); SET LOCAL "
    "client_min_messages = warning; "
    "CREATE SCHEMA IF NOT EXISTS tidegate; "
    "CREATE TABLE IF NOT EXISTS tidegate.schema_migrations (version integer PRIMARY KEY, file text "
    "NOT NULL, "
    "digest text NOT NULL, applied_at timestamptz NOT NULL)";

uint32_t ledger_schema_version(void)
{
    return migrations[MIGRATION_COUNT - 1].version;
}

static void digest_of(const struct migration *migration, char out_hex[2 * DIGEST_BYTES + 1])
{
    uint8_t digest[DIGEST_BYTES];
    struct tg_mac mac;
    tg_mac_begin(&mac, NULL, "migration");
    tg_mac_text(&mac, migration->sql);
    tg_mac_end(&mac, digest, sizeof digest);
    tg_hex_encode(digest, sizeof digest, out_hex);
}

static bool run(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    const ExecStatusType status = PQresultStatus(result);
    const bool done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!done) {
        fprintf(stderr, "tidegate-ledger: %s", PQresultErrorMessage(result));
    }
    PQclear(result);
    return done;
}

/* COMMIT of a failed transaction succeeds with the tag ROLLBACK. */
static bool commit(PGconn *connection)
{
    PGresult *result = PQexec(connection, "COMMIT");
    const bool done =
        PQresultStatus(result) == PGRES_COMMAND_OK && strcmp(PQcmdStatus(result), "COMMIT") == 0;
    if (!done) {
        fprintf(stderr, "tidegate-ledger: the migration was rolled back: %s\n",
                PQresultErrorMessage(result));
    }
    PQclear(result);
    return done;
}

/* The digest under which this version was applied: 1 found, 0 not applied, -1 the query failed. */
static int applied_digest(PGconn *connection, const struct migration *migration,
                          char out_hex[2 * DIGEST_BYTES + 1])
{
    char digits[24];
    tg_unsigned_format(migration->version, digits);
    const char *values[] = {digits};
    PGresult *result = PQexecParams(
        connection, "SELECT digest FROM tidegate.schema_migrations WHERE version = $1::integer", 1,
        NULL, values, NULL, NULL, 0);
    int found = -1;
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        found = PQntuples(result);
        if (found == 1) {
            snprintf(out_hex, 2 * DIGEST_BYTES + 1, "%s", PQgetvalue(result, 0, 0));
        }
    } else {
        fprintf(stderr, "tidegate-ledger: %s", PQresultErrorMessage(result));
    }
    PQclear(result);
    return found;
}

static bool note_applied(PGconn *connection, const struct migration *migration, const char *digest)
{
    char digits[24];
    tg_unsigned_format(migration->version, digits);
    const char *values[] = {digits, migration->file, digest};
    PGresult *result =
        PQexecParams(connection,
                     "INSERT INTO tidegate.schema_migrations (version, file, digest, applied_at) "
                     "VALUES ($1::integer, $2, $3, clock_timestamp())",
                     3, NULL, values, NULL, NULL, 0);
    const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!done) {
        fprintf(stderr, "tidegate-ledger: %s", PQresultErrorMessage(result));
    }
    PQclear(result);
    return done;
}

static int apply(PGconn *connection, const struct migration *migration)
{
    char digest[2 * DIGEST_BYTES + 1], applied[2 * DIGEST_BYTES + 1];
    digest_of(migration, digest);
    if (!run(connection, begin_sql)) {
        return EXIT_FAILED;
    }
    const int found = applied_digest(connection, migration, applied);
    if (found < 0) {
        return EXIT_FAILED;
    }
    if (found == 1) {
        if (strcmp(digest, applied) != 0) {
            fprintf(stderr,
                    "tidegate-ledger: %s was applied with other contents; migrations are never "
                    "edited\n",
                    migration->file);
            return EXIT_REFUSED;
        }
        return commit(connection) ? 0 : EXIT_FAILED;
    }
    if (!run(connection, migration->sql) || !note_applied(connection, migration, digest) ||
        !commit(connection)) {
        fprintf(stderr, "tidegate-ledger: %s failed, nothing of it was applied\n", migration->file);
        return EXIT_FAILED;
    }
    printf("applied %s\n", migration->file);
    return 0;
}

/* A database that was migrated by a newer binary is not ours to touch. */
static int refuse_newer(PGconn *connection)
{
    PGresult *result =
        PQexec(connection, "SELECT coalesce(max(version), 0) FROM tidegate.schema_migrations");
    int code = EXIT_FAILED;
    uint64_t version = 0;
    if (PQresultStatus(result) == PGRES_TUPLES_OK &&
        tg_unsigned_parse(PQgetvalue(result, 0, 0), strlen(PQgetvalue(result, 0, 0)), UINT32_MAX,
                          &version) == 0) {
        code = version > ledger_schema_version() ? EXIT_REFUSED : 0;
    }
    if (code == EXIT_REFUSED) {
        fprintf(stderr, "tidegate-ledger: the schema is at %u, this binary knows %u\n",
                (unsigned)version, ledger_schema_version());
    }
    PQclear(result);
    return code;
}

int ledger_migrate(const char *conninfo)
{
    PGconn *connection = PQconnectdb(conninfo);
    if (PQstatus(connection) != CONNECTION_OK) {
        fprintf(stderr, "tidegate-ledger: %s", PQerrorMessage(connection));
        PQfinish(connection);
        return EXIT_FAILED;
    }
    int code = 0;
    for (size_t i = 0; i < MIGRATION_COUNT && code == 0; i++) {
        code = apply(connection, &migrations[i]);
    }
    if (code == 0) {
        code = refuse_newer(connection);
    }
    PQfinish(connection);
    return code;
}
