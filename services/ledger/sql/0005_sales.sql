-- SPDX-License-Identifier: Apache-2.0
-- Sales as everybody hears of them: the listing, the tick that opens and sells out, arming, proof and the gate's log.

-- Definitions and states in one row per sale, ordered by name. items: "sku:units:price:currency;..."; pauses: "id:hex of
-- the cause;..."; lifted: "id;..."; draw: "count;index;beacon;secret;seed;root", '' = not frozen, bytes in hex. p_only NULL: all after p_after.
CREATE FUNCTION tidegate.list_sales(p_after text, p_only text, p_limit integer)
RETURNS TABLE (
    sale text, generation bigint, items text, opens_ms bigint, queue_order text, limit_per_buyer integer, hold_ms bigint,
    grace_ms bigint, extend_ms bigint, extensions_max integer, pace_start_milli bigint, pace_min_milli bigint,
    pace_max_milli bigint, proof_every_ms bigint, proof_lease_ms bigint, remaining_bucketed boolean, shards integer,
    state text, epoch bigint, armed boolean, run_id text, replication_id text, control_seq bigint, pauses text,
    lifted text, now_ms bigint, open_from_ms bigint, last_clean_ms bigint, clean_rounds integer, pace_milli bigint,
    challenge integer, commitment bytea, beacon text, opened boolean, draw text)
LANGUAGE sql STABLE AS $$
    SELECT s.sale, s.generation,
           (SELECT string_agg(i.sku || ':' || i.units || ':' || i.price_minor || ':' || i.currency, ';' ORDER BY i.item)
              FROM tidegate.sale_items i WHERE i.sale = s.sale AND i.generation = s.generation),
           tidegate.to_ms(s.opens_at), s.queue_order, s.limit_per_buyer, s.hold_ms, s.grace_ms, s.extend_ms,
           s.extensions_max, s.pace_start_milli, s.pace_min_milli, s.pace_max_milli, s.proof_every_ms, s.proof_lease_ms,
           s.remaining_bucketed, s.shards, s.state, s.epoch, s.armed, s.run_id, s.replication_id, s.control_seq,
           coalesce((SELECT string_agg(p.id || ':' || encode(convert_to(p.cause, 'UTF8'), 'hex'), ';' ORDER BY p.n)
                       FROM unnest(s.pause_ids, s.pause_causes) WITH ORDINALITY AS p (id, cause, n)), ''),
           array_to_string(s.lifted_ids, ';'), tidegate.to_ms(clock_timestamp()),
           tidegate.to_ms(least(s.opens_at, s.opened_at)), coalesce(tidegate.to_ms(s.last_clean_at), 0), s.clean_rounds,
           s.pace_milli, s.challenge, s.commitment, s.beacon, s.opened_at IS NOT NULL,
           coalesce((SELECT d.count || ';' || d.index_at_open || ';' || encode(coalesce(d.beacon, ''), 'hex') || ';' ||
                            encode(coalesce(d.secret, ''), 'hex') || ';' || encode(coalesce(d.seed, ''), 'hex') || ';' ||
                            encode(d.root, 'hex')
                       FROM tidegate.draws d WHERE d.sale = s.sale AND d.generation = s.generation), '')
      FROM tidegate.sales s
     WHERE CASE WHEN p_only IS NULL THEN s.sale > p_after ELSE s.sale = p_only END
     ORDER BY s.sale LIMIT p_limit
$$;

-- A clean round of this epoch is known and not older than the proof's lease.
CREATE FUNCTION tidegate.proof_fresh(p_sale tidegate.sales) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT p_sale.clean_rounds > 0
       AND coalesce(p_sale.last_clean_at + tidegate.span(p_sale.proof_lease_ms) >= clock_timestamp(), false)
$$;

-- Every unit is confirmed. Counts only when nothing is pending, so it costs nothing in the rush.
CREATE FUNCTION tidegate.all_confirmed(p_sale tidegate.sales) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM tidegate.reservations r WHERE r.sale = p_sale.sale AND r.state = 'pending')
                THEN false
                ELSE (SELECT count(*) FROM tidegate.holdings h
                       WHERE h.sale = p_sale.sale AND h.generation = p_sale.generation AND h.live)
                   = (SELECT sum(i.units) FROM tidegate.sale_items i
                       WHERE i.sale = p_sale.sale AND i.generation = p_sale.generation) END
$$;

CREATE FUNCTION tidegate.stage_wanted(p_sale tidegate.sales) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF p_sale.stage = 'scheduled' AND p_sale.opens_at <= clock_timestamp() AND cardinality(p_sale.pause_ids) = 0
       AND p_sale.armed AND tidegate.proof_fresh(p_sale) THEN
        RETURN 'open';
    END IF;
    IF p_sale.stage IN ('open', 'sold_out') THEN
        RETURN CASE WHEN tidegate.all_confirmed(p_sale) THEN 'sold_out' ELSE 'open' END;
    END IF;
    RETURN p_sale.stage;
END $$;

-- What time does to sales. Any number of ledgers may call it; returns how many sales changed.
CREATE FUNCTION tidegate.tick_sales() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_seen    tidegate.sales;
    v_sale    tidegate.sales;
    v_wanted  text;
    v_changed integer := 0;
BEGIN
    FOR v_seen IN SELECT * FROM tidegate.sales s WHERE s.stage <> 'closed' ORDER BY s.sale LOOP
        CONTINUE WHEN tidegate.stage_wanted(v_seen) = v_seen.stage;
        SELECT * INTO STRICT v_sale FROM tidegate.sales s WHERE s.sale = v_seen.sale FOR NO KEY UPDATE;
        v_wanted := tidegate.stage_wanted(v_sale);
        CONTINUE WHEN v_wanted = v_sale.stage;
        UPDATE tidegate.sales s
           SET stage = v_wanted, control_seq = s.control_seq + 1,
               opened_at = coalesce(s.opened_at, date_trunc('milliseconds', clock_timestamp()))
         WHERE s.sale = v_sale.sale;
        IF v_wanted = 'sold_out' THEN
            INSERT INTO tidegate.outbox (message_id, sale, generation, kind, at)
            VALUES (v_sale.sale || '.' || v_sale.generation || '.sold_out.' || v_sale.control_seq + 1, v_sale.sale,
                    v_sale.generation, 'sold_out', clock_timestamp());
        END IF;
        v_changed := v_changed + 1;
    END LOOP;
    RETURN v_changed;
END $$;

-- What the ledger's promises rest on, and what doctor shows beside it.
CREATE FUNCTION tidegate.configuration() RETURNS TABLE (name text, value text) LANGUAGE sql STABLE AS $$
    SELECT s.name, current_setting(s.name)
      FROM unnest(ARRAY['server_version_num', 'fsync', 'full_page_writes', 'synchronous_commit']) s (name)
    UNION ALL
    SELECT 'connections_left', (current_setting('max_connections')::integer
                                - (SELECT count(*) FROM pg_stat_activity a WHERE a.backend_type = 'client backend'))::text
    UNION ALL
    SELECT 'postgres_rights', CASE WHEN current_setting('is_superuser') = 'on' THEN 'of a superuser'
                                   WHEN has_table_privilege('tidegate.reservations', 'DELETE, TRUNCATE') THEN 'to delete'
                                   ELSE 'least' END
    UNION ALL
    SELECT 'postgres_tls', CASE WHEN s.ssl THEN 'on' WHEN inet_client_addr() IS NULL THEN 'local' ELSE 'off' END
      FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid()
    UNION ALL
    SELECT i.name, coalesce((SELECT CASE WHEN x.indisunique AND x.indisvalid AND x.indisready THEN 'valid' ELSE 'invalid' END
                               FROM pg_index x WHERE x.indexrelid = to_regclass('tidegate.' || i.name)
                                AND x.indrelid = 'tidegate.holdings'::regclass), 'missing')
      FROM unnest(ARRAY['holdings_one_owner', 'holdings_one_slot']) i (name)
$$;

-- Whether a promise would be empty here: a commit that a crash may take back, a unit that may have two owners.
CREATE FUNCTION tidegate.unsound() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT bool_or(c.name IN ('fsync', 'full_page_writes') AND c.value <> 'on' OR c.name = 'synchronous_commit' AND c.value = 'off'
                   OR c.name LIKE 'holdings%' AND c.value <> 'valid') FROM tidegate.configuration() c
$$;

-- The gate of this epoch is loaded and armed on this Redis: known once, for good.
CREATE FUNCTION tidegate.armed_gate(p_sale text, p_epoch bigint, p_run_id text, p_replication_id text)
RETURNS TABLE (reason text) LANGUAGE plpgsql AS $$
DECLARE
    v_sale tidegate.sales;
BEGIN
    SELECT * INTO v_sale FROM tidegate.sales s WHERE s.sale = p_sale FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'sale_unknown';
    ELSIF v_sale.epoch <> p_epoch THEN
        RETURN QUERY SELECT 'stale_epoch';
    ELSIF v_sale.stage = 'closed' THEN
        RETURN QUERY SELECT 'sale_closed';
    ELSIF v_sale.armed THEN
        RETURN QUERY SELECT CASE WHEN v_sale.run_id = p_run_id AND v_sale.replication_id = p_replication_id
                                 THEN '' ELSE 'already_armed' END;
    ELSIF tidegate.unsound() THEN
        RETURN QUERY SELECT 'unsound';
    ELSE
        UPDATE tidegate.sales s
           SET armed = true, armed_at = date_trunc('milliseconds', clock_timestamp()), run_id = p_run_id,
               replication_id = p_replication_id, clean_rounds = 0, last_clean_at = NULL,
               system_identifier = (SELECT c.system_identifier::text FROM pg_control_system() c),
               timeline = substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), control_seq = s.control_seq + 1
         WHERE s.sale = p_sale;
        RETURN QUERY SELECT '';
    END IF;
END $$;

-- The result of a round. Clean rounds of the present epoch in a row are what a resume rests on; a repeat counts once.
CREATE FUNCTION tidegate.append_check(
    p_sale text, p_epoch bigint, p_instance text, p_checked_ms bigint, p_outcome text, p_detail text, p_stock bigint,
    p_pending bigint, p_confirmed bigint, p_in_flight bigint, p_release_pending bigint, p_initial bigint,
    p_round_ms integer)
RETURNS TABLE (reason text) LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := date_trunc('milliseconds', clock_timestamp());
BEGIN
    IF NOT EXISTS (SELECT FROM tidegate.sales s WHERE s.sale = p_sale) THEN
        RETURN QUERY SELECT 'sale_unknown';
        RETURN;
    END IF;
    INSERT INTO tidegate.checks (sale, epoch, instance, checked_ms, outcome, detail, stock, pending, confirmed, in_flight,
                                 release_pending, initial, round_ms, stored_at)
    VALUES (p_sale, p_epoch, p_instance, p_checked_ms, p_outcome, p_detail, p_stock, p_pending, p_confirmed, p_in_flight,
            p_release_pending, p_initial, p_round_ms, v_now)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        UPDATE tidegate.sales s
           SET clean_rounds = CASE WHEN p_outcome = 'clean' THEN least(s.clean_rounds, 1000000) + 1 ELSE 0 END,
               last_clean_at = CASE WHEN p_outcome = 'clean' THEN v_now ELSE s.last_clean_at END
         WHERE s.sale = p_sale AND s.epoch = p_epoch AND s.armed;
    END IF;
    RETURN QUERY SELECT '';
END $$;

-- Where the stored log of a gate ends.
CREATE FUNCTION tidegate.gate_log_tail(p_sale text, p_epoch bigint, p_shard integer)
RETURNS TABLE (sequence bigint, hash bytea) LANGUAGE sql STABLE AS $$
    SELECT g.sequence, g.hash FROM tidegate.gate_log g
     WHERE g.sale = p_sale AND g.epoch = p_epoch AND g.shard = p_shard ORDER BY g.sequence DESC LIMIT 1
$$;

-- Entries that continue the stored log at p_after. Reason gap: they do not (anymore); stored_sequence is where it ends now.
CREATE FUNCTION tidegate.append_gate_log(
    p_sale text, p_epoch bigint, p_shard integer, p_after bigint, p_sequences bigint[], p_kinds text[], p_ids text[],
    p_units text[], p_stocks bigint[], p_gate_ms bigint[], p_sources text[], p_hashes bytea[])
RETURNS TABLE (reason text, stored_sequence bigint) LANGUAGE plpgsql AS $$
DECLARE
    v_tail bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(tidegate.lock_key('log', p_sale || '.' || p_epoch || '.' || p_shard));
    IF NOT EXISTS (SELECT FROM tidegate.sales s WHERE s.sale = p_sale AND s.epoch >= p_epoch) THEN
        RETURN QUERY SELECT 'stale_epoch', 0::bigint;
        RETURN;
    END IF;
    v_tail := coalesce((SELECT t.sequence FROM tidegate.gate_log_tail(p_sale, p_epoch, p_shard) t), 0);
    IF v_tail <> p_after OR p_sequences[1] <> v_tail + 1
       OR EXISTS (SELECT FROM unnest(p_sequences) WITH ORDINALITY AS x (s, o) WHERE x.s <> v_tail + x.o) THEN
        RETURN QUERY SELECT 'gap', v_tail;
        RETURN;
    END IF;
    INSERT INTO tidegate.gate_log (sale, epoch, shard, sequence, kind, reservation_id, units, stock_after, gate_ms, source,
                                   hash, stored_at)
    SELECT p_sale, p_epoch, p_shard, x.s, x.kind, x.id, x.units, x.stock, x.gate_ms, x.source, x.hash,
           date_trunc('milliseconds', clock_timestamp())
      FROM unnest(p_sequences, p_kinds, p_ids, p_units, p_stocks, p_gate_ms, p_sources, p_hashes)
           AS x (s, kind, id, units, stock, gate_ms, source, hash);
    RETURN QUERY SELECT '', v_tail + cardinality(p_sequences);
END $$;
