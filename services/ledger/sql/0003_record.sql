-- SPDX-License-Identifier: Apache-2.0
-- Recording holds. One call = one statement = one transaction. Every function is VOLATILE: in READ COMMITTED each inner
-- statement sees what was committed before it, which is what "take the lock, then read the epoch" needs.

CREATE FUNCTION tidegate.to_ms(p_at timestamptz) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT (extract(epoch FROM date_trunc('milliseconds', p_at)) * 1000)::bigint $$;

CREATE FUNCTION tidegate.from_ms(p_ms bigint) RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT timestamptz 'epoch' + p_ms * interval '1 millisecond' $$;

CREATE FUNCTION tidegate.span(p_ms bigint) RETURNS interval LANGUAGE sql IMMUTABLE AS
$$ SELECT p_ms * interval '1 millisecond' $$;

-- The key of one advisory lock. Purposes: fence, record, control, log, payment.
CREATE FUNCTION tidegate.lock_key(p_purpose text, p_name text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT hashtextextended('tidegate.' || p_purpose || '.' || p_name, 0) $$;

-- The epoch fence: whoever writes on the strength of an epoch holds it shared and reads the epoch in a later statement;
-- a rebuild holds it exclusively. Ends with the transaction, so pooled sessions are fine.
CREATE FUNCTION tidegate.fence_shared(p_sale text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the epoch fence needs READ COMMITTED' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(tidegate.lock_key('fence', p_sale));
END $$;

CREATE FUNCTION tidegate.fence_exclusive(p_sale text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the epoch fence needs READ COMMITTED' USING ERRCODE = 'invalid_transaction_state';
    END IF;
    PERFORM pg_advisory_xact_lock(tidegate.lock_key('fence', p_sale));
END $$;

-- Whatever reads a table is PL/pgSQL: its plans last for the session, those of an SQL function for one call.

-- "item:unit,item:unit" of a reservation, ordered; slots_text is parallel to it.
CREATE FUNCTION tidegate.units_text(p_id text, p_live_only boolean) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(string_agg(h.item || ':' || h.unit, ',' ORDER BY h.item, h.unit), '')
              FROM tidegate.holdings h WHERE h.reservation_id = p_id AND (h.live OR NOT p_live_only));
END $$;

CREATE FUNCTION tidegate.slots_text(p_id text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(string_agg(h.user_slot::text, ',' ORDER BY h.item, h.unit), '')
              FROM tidegate.holdings h WHERE h.reservation_id = p_id AND h.live);
END $$;

-- An active pause more. Idempotent by id; an id that was lifted stays lifted. False: nothing changed.
CREATE FUNCTION tidegate.add_pause(p_sale text, p_pause text, p_cause text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_sale tidegate.sales;
BEGIN
    UPDATE tidegate.sales s
       SET pause_ids = s.pause_ids || p_pause, pause_causes = s.pause_causes || p_cause, control_seq = s.control_seq + 1
     WHERE s.sale = p_sale AND NOT p_pause = ANY (s.pause_ids) AND NOT p_pause = ANY (s.lifted_ids)
       AND cardinality(s.pause_ids) < 32
    RETURNING * INTO v_sale;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO tidegate.outbox (message_id, sale, generation, kind, detail, at)
    VALUES (p_sale || '.' || v_sale.generation || '.paused.' || v_sale.control_seq, p_sale, v_sale.generation, 'paused',
            p_cause, clock_timestamp());
    RETURN true;
END $$;

-- One hold of the batch that found no room: why. A unit that does not exist or has another live owner is worse than a
-- buyer's slot in use.
CREATE FUNCTION tidegate.why_refused(p_sale text, p_generation bigint, p_id text, p_items integer[], p_units integer[])
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN EXISTS (
        SELECT FROM unnest(p_items, p_units) AS u (item, unit)
        LEFT JOIN tidegate.sale_items i ON i.sale = p_sale AND i.generation = p_generation AND i.item = u.item
        LEFT JOIN tidegate.holdings h ON h.sale = p_sale AND h.generation = p_generation AND h.item = u.item
             AND h.unit = u.unit AND h.live AND h.reservation_id <> p_id
        WHERE i.item IS NULL OR u.unit < 0 OR u.unit >= i.units OR h.unit IS NOT NULL)
    THEN 'unit_conflict' ELSE 'limit_conflict' END
$$;

-- One hold with all its units, or an exception with SQLSTATE TG001. False: the id is there already.
CREATE FUNCTION tidegate.record_one(p_sale tidegate.sales, p_hold tidegate.reservations, p_items integer[],
                                    p_units integer[], p_slots integer[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_stored integer;
BEGIN
    INSERT INTO tidegate.reservations SELECT (p_hold).* ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO tidegate.holdings (reservation_id, sale, generation, item, unit, units, buyer_limit, user_id, user_slot)
    SELECT p_hold.id, p_sale.sale, p_sale.generation, u.item, u.unit, i.units, i.buyer_limit, p_hold.user_id, u.slot
      FROM unnest(p_items, p_units, p_slots) AS u (item, unit, slot)
      JOIN tidegate.sale_items i ON i.sale = p_sale.sale AND i.generation = p_sale.generation AND i.item = u.item
     ORDER BY u.item, u.unit
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_stored = ROW_COUNT;
    IF v_stored <> cardinality(p_items) OR v_stored = 0 THEN
        RAISE EXCEPTION 'no room' USING ERRCODE = 'TG001';
    END IF;
    INSERT INTO tidegate.outbox (message_id, sale, generation, kind, reservation_id, at)
    VALUES (p_hold.id || '.held', p_sale.sale, p_sale.generation, 'held', p_hold.id, p_hold.created_at);
    RETURN true;
END $$;

-- The planner settings: plans are made when tables are empty and kept for the session, so a scan that looks cheap then must
-- not be in them.
--
-- A batch of won holds of one sale. Parallel arrays, one element per hold (p_ids ...) and one per unit (p_unit_holds is the
-- 1-based position of its hold; id and user are repeated per unit so that no join is needed). Everything that is new is
-- stored in one go, by plain inserts (ON CONFLICT would cost half as much again); if that does not store exactly what was
-- asked, it is undone and redone hold by hold with ON CONFLICT, so that one bad hold costs only itself.
-- Answers every hold: recorded | already | refused (reason) | unknown (reason try_again).
CREATE FUNCTION tidegate.record_batch(
    p_sale text, p_generations bigint[], p_epochs bigint[], p_ids text[], p_users bytea[], p_places bytea[],
    p_windows bigint[], p_digests bytea[], p_unit_holds integer[], p_unit_ids text[], p_unit_users bytea[],
    p_items integer[], p_units integer[], p_slots integer[])
RETURNS TABLE (ordinal integer, outcome text, reason text, state text, expires_ms bigint, units text, epoch bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    v_sale     tidegate.sales;
    v_now      timestamptz;
    v_expires  timestamptz;
    v_expires_ms bigint;
    v_count    integer := cardinality(p_ids);
    v_why      text[];     -- per hold: '' to be stored, 'recorded', 'already', or a refusal
    v_fresh    boolean[];
    v_wanted   integer;
    v_wanted_units integer;
    v_stored   integer;
    v_done     boolean := false;
    v_hold     tidegate.reservations;
    v_items    integer[];
    v_numbers  integer[];
    v_slots    integer[];
    i          integer;
BEGIN
    PERFORM tidegate.fence_shared(p_sale);
    SELECT * INTO v_sale FROM tidegate.sales s WHERE s.sale = p_sale;
    IF NOT FOUND THEN
        RETURN QUERY SELECT g, 'refused', 'sale_unknown', '', 0::bigint, '', 0::bigint FROM generate_series(1, v_count) g;
        RETURN;
    END IF;
    v_now := date_trunc('milliseconds', clock_timestamp());
    v_expires := v_now + tidegate.span(v_sale.hold_ms);
    v_expires_ms := tidegate.to_ms(v_expires);

    SELECT array_agg(CASE WHEN r.id IS NOT NULL THEN 'already'
                          WHEN a.epoch <> v_sale.epoch OR a.generation <> v_sale.generation THEN 'stale_epoch'
                          WHEN v_sale.stage = 'closed' THEN 'sale_closed'
                          ELSE '' END ORDER BY a.place)
      INTO v_why
      FROM unnest(p_ids, p_generations, p_epochs) WITH ORDINALITY AS a (id, generation, epoch, place)
      LEFT JOIN tidegate.reservations r ON r.id = a.id;
    SELECT array_agg(w = '' ORDER BY o), count(*) FILTER (WHERE w = '')
      INTO v_fresh, v_wanted FROM unnest(v_why) WITH ORDINALITY AS x (w, o);
    SELECT count(*) INTO v_wanted_units FROM unnest(p_unit_holds) AS h WHERE v_fresh[h];

    -- Batches stored in one go take rows in one order and may run side by side; a batch redone hold by hold takes them in
    -- another, so it runs alone in its sale: two of them would wait for each other (undoing the block frees the lock).
    v_done := v_wanted = 0;
    IF v_wanted > 0 THEN
        BEGIN
            PERFORM pg_advisory_xact_lock_shared(tidegate.lock_key('record', p_sale));
            INSERT INTO tidegate.reservations (id, sale, generation, user_id, place, pass_window, digest, epoch, state,
                                               created_at, expires_at)
            SELECT a.id, p_sale, v_sale.generation, a.user_id, a.place, a.pass_window, a.digest, v_sale.epoch, 'pending',
                   v_now, v_expires
              FROM unnest(p_ids, p_users, p_places, p_windows, p_digests, v_fresh)
                   AS a (id, user_id, place, pass_window, digest, fresh)
             WHERE a.fresh ORDER BY a.id;
            GET DIAGNOSTICS v_stored = ROW_COUNT;
            IF v_stored <> v_wanted THEN
                RAISE EXCEPTION 'not all' USING ERRCODE = 'TG001';
            END IF;
            INSERT INTO tidegate.holdings (reservation_id, sale, generation, item, unit, units, buyer_limit, user_id,
                                           user_slot)
            SELECT u.id, p_sale, v_sale.generation, u.item, u.unit, n.units, n.buyer_limit, u.user_id, u.slot
              FROM unnest(p_unit_holds, p_unit_ids, p_unit_users, p_items, p_units, p_slots)
                   AS u (hold, id, user_id, item, unit, slot)
              JOIN tidegate.sale_items n ON n.sale = p_sale AND n.generation = v_sale.generation AND n.item = u.item
             WHERE v_fresh[u.hold] ORDER BY u.item, u.unit;
            GET DIAGNOSTICS v_stored = ROW_COUNT;
            IF v_stored <> v_wanted_units OR v_wanted_units < v_wanted THEN
                RAISE EXCEPTION 'not all' USING ERRCODE = 'TG001';
            END IF;
            INSERT INTO tidegate.outbox (message_id, sale, generation, kind, reservation_id, at)
            SELECT a.id || '.held', p_sale, v_sale.generation, 'held', a.id, v_now
              FROM unnest(p_ids, v_fresh) AS a (id, fresh) WHERE a.fresh;
            v_done := true;
        EXCEPTION
            WHEN SQLSTATE 'TG001' OR integrity_constraint_violation OR raise_exception OR data_exception THEN
                v_done := false;
        END;
    END IF;

    IF v_done THEN
        RETURN QUERY
        SELECT a.place::integer,
               CASE WHEN a.why = '' THEN 'recorded' WHEN a.why = 'already' THEN 'already' ELSE 'refused' END,
               CASE WHEN a.why IN ('', 'already') THEN '' ELSE a.why END,
               CASE WHEN a.why = '' THEN 'pending' ELSE coalesce(r.state, '') END,
               CASE WHEN a.why = '' THEN v_expires_ms ELSE coalesce(tidegate.to_ms(r.expires_at), 0) END,
               CASE WHEN a.why = 'already' THEN tidegate.units_text(a.id, false) ELSE '' END,
               v_sale.epoch
          FROM unnest(p_ids, v_why) WITH ORDINALITY AS a (id, why, place)
          LEFT JOIN tidegate.reservations r ON a.why = 'already' AND r.id = a.id;
        RETURN;
    END IF;

    PERFORM pg_advisory_xact_lock(tidegate.lock_key('record', p_sale));
    FOR i IN SELECT o FROM unnest(p_ids) WITH ORDINALITY AS a (id, o) ORDER BY a.id, o LOOP
        CONTINUE WHEN v_why[i] <> '';
        SELECT array_agg(u.item), array_agg(u.unit), array_agg(u.slot) INTO v_items, v_numbers, v_slots
          FROM unnest(p_unit_holds, p_items, p_units, p_slots) AS u (hold, item, unit, slot) WHERE u.hold = i;
        v_hold := (p_ids[i], p_sale, v_sale.generation, p_users[i], p_places[i], p_windows[i], p_digests[i], v_sale.epoch,
                   'pending', false, v_now, v_expires, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL);
        BEGIN
            IF tidegate.record_one(v_sale, v_hold, v_items, v_numbers, v_slots) THEN
                v_why[i] := 'recorded';
            ELSE
                v_why[i] := 'already';
            END IF;
        EXCEPTION
            WHEN SQLSTATE 'TG001' OR check_violation THEN
                v_why[i] := tidegate.why_refused(p_sale, v_sale.generation, p_ids[i], v_items, v_numbers);
            WHEN integrity_constraint_violation OR raise_exception OR data_exception THEN
                v_why[i] := 'try_again';
        END;
        IF v_why[i] = 'unit_conflict' THEN
            PERFORM tidegate.add_pause(p_sale, substr(p_ids[i], 5), 'unit_conflict');
        END IF;
    END LOOP;

    RETURN QUERY
    SELECT a.place::integer,
           CASE WHEN a.why IN ('recorded', 'already') THEN a.why WHEN a.why = 'try_again' THEN 'unknown' ELSE 'refused' END,
           CASE WHEN a.why IN ('recorded', 'already') THEN '' ELSE a.why END,
           coalesce(r.state, ''), coalesce(tidegate.to_ms(r.expires_at), 0),
           CASE WHEN r.id IS NULL THEN '' ELSE tidegate.units_text(a.id, false) END,
           v_sale.epoch
      FROM unnest(p_ids, v_why) WITH ORDINALITY AS a (id, why, place)
      LEFT JOIN tidegate.reservations r ON a.why IN ('recorded', 'already') AND r.id = a.id;
END $$;
