-- SPDX-License-Identifier: Apache-2.0
-- Judging commands. The daemon has verified signature and expiry; here is decided what they do. Everything that loosens
-- must rest on the present control sequence; pauses, rebuilds and closing only tighten and need not. A command is judged
-- once: its id is the key of control_log, and a repeat is told what the first was told.

CREATE TYPE tidegate.judgement AS (reason text, detail text);

CREATE FUNCTION tidegate.judged(p_reason text, p_detail text) RETURNS tidegate.judgement LANGUAGE sql IMMUTABLE AS
$$ SELECT (p_reason, p_detail)::tidegate.judgement $$;

CREATE FUNCTION tidegate.judge_pause(p_sale tidegate.sales, p_id text, p_cause text, p_plan boolean)
RETURNS tidegate.judgement LANGUAGE plpgsql AS $$
BEGIN
    IF p_sale.stage = 'closed' THEN
        RETURN tidegate.judged('sale_closed', 'the sale is closed');
    END IF;
    IF p_id = ANY (p_sale.lifted_ids) THEN
        RETURN tidegate.judged('', 'this pause was lifted already');
    END IF;
    IF p_id = ANY (p_sale.pause_ids) THEN
        RETURN tidegate.judged('', 'paused already by this command');
    END IF;
    IF cardinality(p_sale.pause_ids) >= 32 THEN
        RETURN tidegate.judged('not_allowed_now', 'the sale is paused and has 32 pauses, no more are kept');
    END IF;
    IF NOT p_plan THEN
        PERFORM tidegate.add_pause(p_sale.sale, p_id, p_cause);
    END IF;
    RETURN tidegate.judged('', 'paused');
END $$;

-- What stands between this sale and selling, or ''.
CREATE FUNCTION tidegate.unproved(p_sale tidegate.sales, p_rounds integer) RETURNS tidegate.judgement
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT p_sale.armed THEN
        RETURN tidegate.judged('not_armed', format('the gate of epoch %s is not loaded and armed yet', p_sale.epoch));
    END IF;
    IF p_sale.clean_rounds < p_rounds OR NOT tidegate.proof_fresh(p_sale) THEN
        RETURN tidegate.judged('not_proved', format('%s clean rounds of epoch %s in a row, %s needed, the last one at most %s ms old%s',
                                     p_sale.clean_rounds, p_sale.epoch, p_rounds, p_sale.proof_lease_ms,
                                     (SELECT '; the last round: ' || c.outcome || coalesce(', ' || nullif(left(c.detail, 300), ''), '')
                                        FROM tidegate.checks c WHERE c.sale = p_sale.sale AND c.epoch = p_sale.epoch
                                       ORDER BY c.id DESC LIMIT 1)));
    END IF;
    RETURN tidegate.judged('', '');
END $$;

CREATE FUNCTION tidegate.judge_resume(p_sale tidegate.sales, p_pauses text[], p_plan boolean)
RETURNS tidegate.judgement LANGUAGE plpgsql AS $$
DECLARE
    v_missing text;
    v_why     tidegate.judgement;
BEGIN
    IF p_sale.stage = 'closed' THEN
        RETURN tidegate.judged('sale_closed', 'the sale is closed');
    END IF;
    SELECT string_agg(x, ' ') INTO v_missing FROM unnest(p_sale.pause_ids) AS x WHERE NOT x = ANY (p_pauses);
    IF v_missing IS NOT NULL THEN
        RETURN tidegate.judged('pauses_missing', 'active and not named: ' || v_missing);
    END IF;
    v_why := tidegate.unproved(p_sale, 2);
    IF v_why.reason <> '' THEN
        RETURN v_why;
    END IF;
    IF NOT p_plan THEN
        UPDATE tidegate.sales s
           SET pause_ids = '{}', pause_causes = '{}', control_seq = s.control_seq + 1,
               lifted_ids = (SELECT coalesce(array_agg(x.id ORDER BY x.o), '{}') FROM (
                                 SELECT y.id, max(y.o) AS o FROM unnest(s.lifted_ids || p_pauses) WITH ORDINALITY AS y (id, o)
                                  GROUP BY y.id ORDER BY max(y.o) DESC LIMIT 64) x)
         WHERE s.sale = p_sale.sale;
        INSERT INTO tidegate.outbox (message_id, sale, generation, kind, at)
        VALUES (p_sale.sale || '.' || p_sale.generation || '.resumed.' || p_sale.control_seq + 1, p_sale.sale,
                p_sale.generation, 'resumed', clock_timestamp());
    END IF;
    RETURN tidegate.judged('', format('resumed, %s pauses lifted', cardinality(p_pauses)));
END $$;

CREATE FUNCTION tidegate.judge_open(p_sale tidegate.sales, p_plan boolean) RETURNS tidegate.judgement
LANGUAGE plpgsql AS $$
DECLARE
    v_why tidegate.judgement;
BEGIN
    IF p_sale.stage <> 'scheduled' THEN
        RETURN tidegate.judged('not_allowed_now', 'the sale is ' || p_sale.state || ', only a scheduled one is opened');
    END IF;
    IF cardinality(p_sale.pause_ids) > 0 THEN
        RETURN tidegate.judged('not_allowed_now', 'the sale is paused, resume it first');
    END IF;
    v_why := tidegate.unproved(p_sale, 1);
    IF v_why.reason <> '' THEN
        RETURN v_why;
    END IF;
    IF NOT p_plan THEN
        UPDATE tidegate.sales s
           SET stage = 'open', opened_at = date_trunc('milliseconds', clock_timestamp()), control_seq = s.control_seq + 1
         WHERE s.sale = p_sale.sale;
    END IF;
    RETURN tidegate.judged('', 'open');
END $$;

-- The caller holds the fence exclusively. The pause a rebuild brings carries the command's id.
CREATE FUNCTION tidegate.judge_rebuild(p_sale tidegate.sales, p_id text, p_cause text, p_plan boolean)
RETURNS tidegate.judgement LANGUAGE plpgsql AS $$
BEGIN
    IF p_sale.stage = 'closed' THEN
        RETURN tidegate.judged('sale_closed', 'the sale is closed');
    END IF;
    IF NOT p_plan THEN
        PERFORM tidegate.add_pause(p_sale.sale, p_id, 'rebuild: ' || p_cause);
        UPDATE tidegate.sales s
           SET epoch = s.epoch + 1, armed = false, armed_at = NULL, run_id = '', replication_id = '',
               system_identifier = '', timeline = '', clean_rounds = 0, last_clean_at = NULL,
               control_seq = s.control_seq + 1
         WHERE s.sale = p_sale.sale;
    END IF;
    RETURN tidegate.judged('', format('paused, the gate of epoch %s is being built', p_sale.epoch + 1));
END $$;

CREATE FUNCTION tidegate.judge_close(p_sale tidegate.sales, p_plan boolean) RETURNS tidegate.judgement
LANGUAGE plpgsql AS $$
BEGIN
    IF p_sale.stage = 'closed' THEN
        RETURN tidegate.judged('', 'closed already');
    END IF;
    IF NOT p_plan THEN
        UPDATE tidegate.sales s
           SET stage = 'closed', closed_at = date_trunc('milliseconds', clock_timestamp()),
               control_seq = s.control_seq + 1
         WHERE s.sale = p_sale.sale;
    END IF;
    RETURN tidegate.judged('', 'closed');
END $$;

CREATE FUNCTION tidegate.judge_pace(p_sale tidegate.sales, p_sequence bigint, p_pace bigint, p_plan boolean)
RETURNS tidegate.judgement LANGUAGE plpgsql AS $$
DECLARE
    v_now    bigint := CASE WHEN p_sale.pace_milli = 0 THEN p_sale.pace_start_milli ELSE p_sale.pace_milli END;
    v_wanted bigint := CASE WHEN p_pace = 0 THEN p_sale.pace_start_milli ELSE p_pace END;
BEGIN
    IF p_sale.stage = 'closed' THEN
        RETURN tidegate.judged('sale_closed', 'the sale is closed');
    END IF;
    IF v_wanted > v_now AND p_sequence <> p_sale.control_seq THEN
        RETURN tidegate.judged('stale_sequence', format('based on %s, the sale is at %s', p_sequence, p_sale.control_seq));
    END IF;
    IF v_wanted < p_sale.pace_min_milli OR v_wanted > p_sale.pace_max_milli THEN
        RETURN tidegate.judged('definition_invalid', format('pace.min to pace.max of the sale are %s/s to %s/s',
                                             (p_sale.pace_min_milli / 1000.0)::float8, (p_sale.pace_max_milli / 1000.0)::float8));
    END IF;
    IF NOT p_plan THEN
        UPDATE tidegate.sales s SET pace_milli = p_pace, control_seq = s.control_seq + 1 WHERE s.sale = p_sale.sale;
    END IF;
    RETURN tidegate.judged('', CASE p_pace WHEN 0 THEN 'back to the law' ELSE format('pace %s/s', (v_wanted / 1000.0)::float8) END);
END $$;

-- More time for whoever may still pay: when payments are slow, nobody who pays loses a unit to the clock. Each pending
-- deadline is p_ms later; what is past deadline and grace has lapsed, and stays so. The gate's copy of a deadline is not
-- touched: nothing is released by it (decision 4).
CREATE FUNCTION tidegate.judge_extend(p_sale tidegate.sales, p_ms bigint, p_plan boolean) RETURNS tidegate.judgement
LANGUAGE plpgsql AS $$
DECLARE
    v_now   timestamptz := clock_timestamp();
    v_count bigint;
BEGIN
    IF p_plan THEN
        SELECT count(*) INTO v_count FROM tidegate.reservations r
         WHERE r.sale = p_sale.sale AND r.generation = p_sale.generation AND r.state = 'pending'
           AND r.expires_at + tidegate.span(p_sale.grace_ms) > v_now;
        RETURN tidegate.judged('', format('%s holds in flight would have %s ms more', v_count, p_ms));
    END IF;
    -- In the order of ids, as whoever expires them locks them.
    PERFORM FROM tidegate.reservations r
      WHERE r.sale = p_sale.sale AND r.generation = p_sale.generation AND r.state = 'pending' ORDER BY r.id FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    UPDATE tidegate.reservations r SET expires_at = r.expires_at + tidegate.span(p_ms)
     WHERE r.sale = p_sale.sale AND r.generation = p_sale.generation AND r.state = 'pending'
       AND r.expires_at + tidegate.span(p_sale.grace_ms) > v_now;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    UPDATE tidegate.sales s SET control_seq = s.control_seq + 1 WHERE s.sale = p_sale.sale;
    RETURN tidegate.judged('', format('%s holds in flight have %s ms more', v_count, p_ms));
END $$;

-- The definition columns of a new generation. p_definition was checked by the daemon; the constraints have the last word.
CREATE FUNCTION tidegate.store_definition(p_sale text, p_generation bigint, p_definition jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO tidegate.sales AS s (
        sale, generation, opens_at, queue_order, limit_per_buyer, hold_ms, grace_ms, extend_ms, extensions_max,
        pace_start_milli, pace_min_milli, pace_max_milli, proof_every_ms, proof_lease_ms, remaining_bucketed, shards, challenge,
        commitment, beacon,
        epoch, created_at)
    VALUES (
        p_sale, p_generation, tidegate.from_ms((p_definition->>'opens_ms')::bigint), p_definition->>'order',
        (p_definition->>'limit_per_buyer')::integer, (p_definition->>'hold_ms')::bigint,
        (p_definition->>'grace_ms')::bigint, (p_definition->>'extend_ms')::bigint,
        (p_definition->>'extensions_max')::integer, (p_definition->>'pace_start_milli')::bigint,
        (p_definition->>'pace_min_milli')::bigint, (p_definition->>'pace_max_milli')::bigint,
        (p_definition->>'proof_every_ms')::bigint, (p_definition->>'proof_lease_ms')::bigint,
        (p_definition->>'remaining_bucketed')::boolean, (p_definition->>'shards')::integer,
        (p_definition->>'challenge')::integer, decode(coalesce(p_definition->>'commitment', ''), 'hex'),
        coalesce(p_definition->>'beacon', ''), 1, date_trunc('milliseconds', clock_timestamp()))
    ON CONFLICT (sale) DO UPDATE SET
        generation = excluded.generation, opens_at = excluded.opens_at, queue_order = excluded.queue_order,
        limit_per_buyer = excluded.limit_per_buyer, hold_ms = excluded.hold_ms, grace_ms = excluded.grace_ms,
        extend_ms = excluded.extend_ms, extensions_max = excluded.extensions_max,
        pace_start_milli = excluded.pace_start_milli, pace_min_milli = excluded.pace_min_milli,
        pace_max_milli = excluded.pace_max_milli, proof_every_ms = excluded.proof_every_ms,
        proof_lease_ms = excluded.proof_lease_ms, remaining_bucketed = excluded.remaining_bucketed,
        shards = excluded.shards, challenge = excluded.challenge, commitment = excluded.commitment,
        beacon = excluded.beacon, epoch = s.epoch + 1,
        created_at = excluded.created_at, stage = 'scheduled',
        pause_ids = '{}', pause_causes = '{}', control_seq = s.control_seq + 1, armed = false, armed_at = NULL,
        run_id = '', replication_id = '', system_identifier = '', timeline = '', last_clean_at = NULL, clean_rounds = 0,
        pace_milli = 0, opened_at = NULL, closed_at = NULL;
    INSERT INTO tidegate.sale_items (sale, generation, item, sku, units, price_minor, currency, buyer_limit)
    SELECT p_sale, p_generation, (i.n - 1)::integer, i.item->>'sku', (i.item->>'units')::integer,
           (i.item->>'price_minor')::bigint, i.item->>'currency', (p_definition->>'limit_per_buyer')::integer
      FROM jsonb_array_elements(p_definition->'items') WITH ORDINALITY AS i (item, n);
$$;

-- The present definition in the form of p_definition.
CREATE FUNCTION tidegate.definition_of(p_sale tidegate.sales) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'opens_ms', tidegate.to_ms(p_sale.opens_at), 'order', p_sale.queue_order,
        'limit_per_buyer', p_sale.limit_per_buyer, 'hold_ms', p_sale.hold_ms, 'grace_ms', p_sale.grace_ms,
        'extend_ms', p_sale.extend_ms, 'extensions_max', p_sale.extensions_max,
        'pace_start_milli', p_sale.pace_start_milli, 'pace_min_milli', p_sale.pace_min_milli,
        'pace_max_milli', p_sale.pace_max_milli, 'proof_every_ms', p_sale.proof_every_ms,
        'proof_lease_ms', p_sale.proof_lease_ms, 'remaining_bucketed', p_sale.remaining_bucketed, 'shards', p_sale.shards,
        'challenge', p_sale.challenge, 'commitment', encode(p_sale.commitment, 'hex'), 'beacon', p_sale.beacon,
        'items', (SELECT jsonb_agg(jsonb_build_object('sku', i.sku, 'units', i.units, 'price_minor', i.price_minor,
                                                      'currency', i.currency) ORDER BY i.item)
                    FROM tidegate.sale_items i WHERE i.sale = p_sale.sale AND i.generation = p_sale.generation))
$$;

-- Fields of a definition as the sale file calls them.
CREATE FUNCTION tidegate.as_in_the_file(p_fields text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(coalesce('{"opens_ms": "opensAt", "order": "policy.order", "limit_per_buyer": "limits.perBuyer",
        "hold_ms": "limits.holdFor", "grace_ms": "limits.grace", "extend_ms": "limits.extendBy",
        "extensions_max": "limits.extensions", "pace_start_milli": "pace.start", "pace_min_milli": "pace.min",
        "pace_max_milli": "pace.max", "proof_every_ms": "proof.everyMs", "proof_lease_ms": "proof.leaseFor",
        "remaining_bucketed": "show.remaining", "challenge": "policy.challenge", "commitment": "policy.commitment",
        "beacon": "policy.beacon"}'::jsonb->>f, f), ', ') FROM unnest(p_fields) f
$$;

-- The caller holds the control lock and, for a closed sale, the fence exclusively. p_sale is all NULL for a new sale.
CREATE FUNCTION tidegate.judge_apply(p_name text, p_sale tidegate.sales, p_sequence bigint, p_definition jsonb,
                                     p_plan boolean) RETURNS tidegate.judgement LANGUAGE plpgsql AS $$
DECLARE
    v_changed text[];
    v_stale   tidegate.judgement := tidegate.judged('stale_sequence', format('based on %s, the sale is at %s', p_sequence,
                                                              p_sale.control_seq));
BEGIN
    IF (p_sale.sale IS NULL OR p_sale.stage = 'closed') AND p_definition->>'order' <> 'fifo' AND EXISTS (
            SELECT FROM tidegate.draws d WHERE encode(d.commitment, 'hex') = p_definition->>'commitment') THEN
        RETURN tidegate.judged('definition_invalid', 'policy.commitment was drawn before: make a new secret');
    END IF;
    IF p_sale.sale IS NULL THEN
        IF (SELECT count(*) FROM tidegate.sales) >= 64 THEN
            RETURN tidegate.judged('not_allowed_now', 'there are 64 sales, no more are kept: take the name of a closed one');
        END IF;
        IF NOT p_plan THEN
            PERFORM tidegate.store_definition(p_name, 1, p_definition);
        END IF;
        RETURN tidegate.judged('', 'created');
    END IF;
    IF p_sale.stage = 'closed' THEN
        IF p_sequence <> p_sale.control_seq THEN
            RETURN v_stale;
        END IF;
        IF EXISTS (SELECT FROM tidegate.reservations r WHERE r.sale = p_name AND r.state = 'pending') THEN
            RETURN tidegate.judged('not_allowed_now', 'holds of the closed sale are still pending');
        END IF;
        IF NOT p_plan THEN
            PERFORM tidegate.store_definition(p_name, p_sale.generation + 1, p_definition);
        END IF;
        RETURN tidegate.judged('', format('created again, generation %s', p_sale.generation + 1));
    END IF;
    SELECT coalesce(array_agg(n.key ORDER BY n.key), '{}') INTO v_changed
      FROM jsonb_each(p_definition) n JOIN jsonb_each(tidegate.definition_of(p_sale)) o USING (key)
     WHERE n.value <> o.value;
    IF v_changed = '{}' THEN
        RETURN tidegate.judged('', 'unchanged');
    END IF;
    IF p_sale.stage <> 'scheduled'
       OR NOT v_changed <@ ARRAY['opens_ms', 'pace_start_milli', 'pace_min_milli', 'pace_max_milli'] THEN
        RETURN tidegate.judged('definition_frozen', format('%s cannot change any more: close the sale first, or take another name',
                                                          tidegate.as_in_the_file(v_changed)));
    END IF;
    IF p_sequence <> p_sale.control_seq THEN
        RETURN v_stale;
    END IF;
    IF NOT p_plan THEN
        UPDATE tidegate.sales s
           SET opens_at = tidegate.from_ms((p_definition->>'opens_ms')::bigint),
               pace_start_milli = (p_definition->>'pace_start_milli')::bigint,
               pace_min_milli = (p_definition->>'pace_min_milli')::bigint,
               pace_max_milli = (p_definition->>'pace_max_milli')::bigint, pace_milli = 0, control_seq = s.control_seq + 1
         WHERE s.sale = p_name;
    END IF;
    RETURN tidegate.judged('', 'changed: ' || tidegate.as_in_the_file(v_changed));
END $$;

CREATE FUNCTION tidegate.judge_known(p_sale tidegate.sales, p_id text, p_kind text, p_sequence bigint, p_pauses text[],
                                     p_number bigint, p_cause text, p_plan boolean)
RETURNS tidegate.judgement LANGUAGE plpgsql AS $$
BEGIN
    IF p_kind IN ('open', 'resume', 'extend') AND p_sequence <> p_sale.control_seq THEN
        RETURN tidegate.judged('stale_sequence', format('based on %s, the sale is at %s', p_sequence, p_sale.control_seq));
    END IF;
    RETURN CASE p_kind
        WHEN 'pause' THEN tidegate.judge_pause(p_sale, p_id, p_cause, p_plan)
        WHEN 'resume' THEN tidegate.judge_resume(p_sale, p_pauses, p_plan)
        WHEN 'open' THEN tidegate.judge_open(p_sale, p_plan)
        WHEN 'rebuild' THEN tidegate.judge_rebuild(p_sale, p_id, p_cause, p_plan)
        WHEN 'close' THEN tidegate.judge_close(p_sale, p_plan)
        WHEN 'beacon' THEN tidegate.judge_beacon(p_sale, p_cause, p_plan)
        WHEN 'pace' THEN tidegate.judge_pace(p_sale, p_sequence, p_number, p_plan)
        WHEN 'extend' THEN tidegate.judge_extend(p_sale, p_number, p_plan)
        ELSE tidegate.judged('malformed', 'unknown kind of command') END;
END $$;

-- Several ledgers hear a command at the same time: the first to hold the sale judges it, the others find it in the log.
-- A refused pause is not logged, so that repeating it can still pause. The fence comes first, before any row is locked:
-- a pause, which takes only the row, never waits for it. p_number: pace, people per 1000 s; extend, milliseconds.
CREATE FUNCTION tidegate.judge_command(
    p_id text, p_sale text, p_generation bigint, p_kind text, p_sequence bigint, p_key text, p_command bytea,
    p_signature bytea, p_pauses text[], p_number bigint, p_cause text, p_plan boolean, p_definition jsonb)
RETURNS TABLE (reason text, detail text, repeated boolean) LANGUAGE plpgsql AS $$
DECLARE
    v_sale  tidegate.sales;
    v_known tidegate.control_log;
    v_done  tidegate.judgement;
BEGIN
    -- Applying needs the fence only to create a closed sale again. One that closes after this look was not closed when the
    -- command was made: its control sequence refuses it.
    IF NOT p_plan AND (p_kind = 'rebuild' OR (p_kind = 'apply' AND EXISTS (
            SELECT FROM tidegate.sales s WHERE s.sale = p_sale AND s.stage = 'closed'))) THEN
        PERFORM tidegate.fence_exclusive(p_sale);
    END IF;
    IF p_kind = 'apply' THEN
        PERFORM pg_advisory_xact_lock(tidegate.lock_key('control', ''));
    END IF;
    SELECT * INTO v_sale FROM tidegate.sales s WHERE s.sale = p_sale FOR NO KEY UPDATE;
    SELECT * INTO v_known FROM tidegate.control_log c WHERE c.command_id = p_id;
    IF FOUND THEN
        IF v_known.sale <> p_sale OR v_known.kind <> p_kind THEN
            RETURN QUERY SELECT 'malformed', 'this command id was used for something else', true;
            RETURN;
        END IF;
        RETURN QUERY SELECT v_known.reason, v_known.detail, true;
        RETURN;
    END IF;
    IF p_kind = 'apply' THEN
        v_done := tidegate.judge_apply(p_sale, v_sale, p_sequence, p_definition, p_plan);
    ELSIF v_sale.sale IS NULL THEN
        v_done := tidegate.judged('sale_unknown', 'there is no such sale');
    ELSIF p_generation <> 0 AND p_generation <> v_sale.generation THEN
        v_done := tidegate.judged('stale_sequence', format('meant for generation %s, the sale is at %s', p_generation,
                                            v_sale.generation));
    ELSE
        v_done := tidegate.judge_known(v_sale, p_id, p_kind, p_sequence, p_pauses, p_number, p_cause, p_plan);
    END IF;
    IF NOT p_plan AND NOT (p_kind = 'pause' AND v_done.reason <> '') THEN
        INSERT INTO tidegate.control_log (command_id, sale, kind, key_id, command, signature, reason, detail, control_seq,
                                          judged_at)
        SELECT p_id, p_sale, p_kind, p_key, p_command, p_signature, v_done.reason, v_done.detail,
               coalesce((SELECT s.control_seq FROM tidegate.sales s WHERE s.sale = p_sale), 0), clock_timestamp();
    END IF;
    RETURN QUERY SELECT v_done.reason, v_done.detail, false;
END $$;
