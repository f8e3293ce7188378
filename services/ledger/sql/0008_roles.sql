-- SPDX-License-Identifier: Apache-2.0
-- One role per service: ledger writes, invariant reads, nobody deletes. Passwords are given by whoever runs the cluster.
-- The settings are the roles' own, so that they hold through a transaction pooler too: no statement waits for a lock longer
-- than its caller does.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tidegate_ledger') THEN
        CREATE ROLE tidegate_ledger LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tidegate_invariant') THEN
        CREATE ROLE tidegate_invariant LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;
    END IF;
END $$;

ALTER ROLE tidegate_ledger SET default_transaction_isolation = 'read committed';
ALTER ROLE tidegate_ledger SET synchronous_commit = 'on';
ALTER ROLE tidegate_ledger SET lock_timeout = '1500ms';
ALTER ROLE tidegate_ledger SET statement_timeout = '5s';
ALTER ROLE tidegate_ledger SET idle_in_transaction_session_timeout = '5s';
ALTER ROLE tidegate_invariant SET default_transaction_read_only = on;
ALTER ROLE tidegate_invariant SET statement_timeout = '10s';
ALTER ROLE tidegate_invariant SET idle_in_transaction_session_timeout = '10s';

REVOKE ALL ON SCHEMA tidegate FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tidegate FROM PUBLIC;
GRANT USAGE ON SCHEMA tidegate TO tidegate_ledger, tidegate_invariant;

GRANT SELECT ON ALL TABLES IN SCHEMA tidegate TO tidegate_ledger, tidegate_invariant;
GRANT INSERT ON tidegate.sales, tidegate.sale_items, tidegate.reservations, tidegate.holdings, tidegate.gate_log,
    tidegate.outbox, tidegate.checks, tidegate.control_log, tidegate.rosters, tidegate.draws TO tidegate_ledger;
GRANT UPDATE ON tidegate.sales, tidegate.reservations, tidegate.holdings, tidegate.outbox, tidegate.publisher,
    tidegate.draws
    TO tidegate_ledger;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tidegate TO tidegate_ledger;
GRANT EXECUTE ON FUNCTION tidegate.to_ms(timestamptz), tidegate.units_text(text, boolean), tidegate.slots_text(text),
    tidegate.gate_log_tail(text, bigint, integer) TO tidegate_invariant;
