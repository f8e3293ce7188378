-- SPDX-License-Identifier: Apache-2.0
-- The verdicts: confirmed, expired, cancelled, and what leads to them. Each locks the reservation first and reads the clock
-- in a later statement, so that of two verdicts racing at the deadline exactly one wins and it is the one the clock allows.
-- State, holdings and event change in one transaction.

CREATE TYPE tidegate.reservation_answer AS (
    reason text, sale text, state text, expires_ms bigint, units text, order_id text, payment_id text, replayed boolean,
    epoch bigint);

CREATE FUNCTION tidegate.answer_with(p_row tidegate.reservations, p_reason text, p_replayed boolean)
RETURNS tidegate.reservation_answer LANGUAGE plpgsql AS $$
DECLARE
    v_answer tidegate.reservation_answer;
BEGIN
    v_answer.reason := p_reason;
    v_answer.sale := p_row.sale;
    v_answer.state := p_row.state;
    v_answer.expires_ms := tidegate.to_ms(p_row.expires_at);
    v_answer.units := tidegate.units_text(p_row.id, false);
    v_answer.order_id := coalesce(p_row.order_id, '');
    v_answer.payment_id := coalesce(p_row.payment_id, '');
    v_answer.replayed := p_replayed;
    SELECT s.epoch INTO v_answer.epoch FROM tidegate.sales s WHERE s.sale = p_row.sale;
    RETURN v_answer;
END $$;

CREATE FUNCTION tidegate.refusal(p_reason text) RETURNS tidegate.reservation_answer LANGUAGE sql IMMUTABLE AS $$
    SELECT (p_reason, '', '', 0, '', '', '', false, 0)::tidegate.reservation_answer
$$;

CREATE FUNCTION tidegate.past_grace(p_row tidegate.reservations) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN clock_timestamp() >= p_row.expires_at
        + tidegate.span((SELECT s.grace_ms FROM tidegate.sales s WHERE s.sale = p_row.sale));
END $$;

-- p_user NULL: asked with the service credential.
CREATE FUNCTION tidegate.read_reservation(p_id text, p_user bytea) RETURNS tidegate.reservation_answer
LANGUAGE plpgsql AS $$
DECLARE
    v_row tidegate.reservations;
BEGIN
    SELECT * INTO v_row FROM tidegate.reservations r WHERE r.id = p_id AND (p_user IS NULL OR r.user_id = p_user);
    IF NOT FOUND THEN
        RETURN tidegate.refusal('reservation_unknown');
    END IF;
    RETURN tidegate.answer_with(v_row, '', false);
END $$;

-- The event that tells the shop to give a payment back. Once per payment, whichever reservations it was tried on.
CREATE FUNCTION tidegate.compensate(p_row tidegate.reservations, p_payment text, p_amount bigint, p_currency text,
                                    p_why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tidegate.outbox (message_id, sale, generation, kind, reservation_id, order_id, payment_id, amount_minor,
                                 currency, detail, at)
    VALUES ('compensate.' || p_payment, p_row.sale, p_row.generation, 'compensate', p_row.id, coalesce(p_row.order_id, ''),
            p_payment, p_amount, p_currency, p_why, clock_timestamp())
    ON CONFLICT (message_id) DO NOTHING;
END $$;

-- The exact price of all its units, in their one currency.
CREATE FUNCTION tidegate.costs(p_row tidegate.reservations, p_amount bigint, p_currency text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) > 0 AND sum(i.price_minor) = p_amount AND bool_and(i.currency = p_currency)
              FROM tidegate.holdings h
              JOIN tidegate.sale_items i ON i.sale = h.sale AND i.generation = h.generation AND i.item = h.item
             WHERE h.reservation_id = p_row.id);
END $$;

CREATE FUNCTION tidegate.confirm_reservation(p_id text, p_payment text, p_amount bigint, p_currency text, p_order text)
RETURNS tidegate.reservation_answer LANGUAGE plpgsql AS $$
DECLARE
    v_row tidegate.reservations;
    v_why text;
BEGIN
    PERFORM pg_advisory_xact_lock(tidegate.lock_key('payment', p_payment));
    SELECT * INTO v_row FROM tidegate.reservations r WHERE r.id = p_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN tidegate.refusal('reservation_unknown');
    END IF;
    IF v_row.payment_id = p_payment THEN
        IF v_row.amount_minor <> p_amount OR v_row.currency <> p_currency THEN
            RETURN tidegate.answer_with(v_row, 'amount_mismatch', false);
        END IF;
        IF v_row.state = 'confirmed' THEN
            RETURN tidegate.answer_with(v_row, '', true);
        END IF;
        RETURN tidegate.answer_with(v_row, 'reservation_cancelled', true); -- its own event told the shop
    END IF;
    IF EXISTS (SELECT FROM tidegate.reservations r WHERE r.payment_id = p_payment) THEN
        RETURN tidegate.answer_with(v_row, 'payment_used', false); -- it bought something: never told to be given back
    END IF;
    v_why := CASE v_row.state WHEN 'confirmed' THEN 'already_paid' WHEN 'cancelled' THEN 'reservation_cancelled'
                              WHEN 'expired' THEN 'reservation_expired' ELSE '' END;
    IF v_why = '' AND tidegate.past_grace(v_row) THEN
        v_why := 'reservation_expired';
    END IF;
    IF v_why <> '' THEN
        PERFORM tidegate.compensate(v_row, p_payment, p_amount, p_currency, v_why);
        RETURN tidegate.answer_with(v_row, v_why, false);
    END IF;
    IF EXISTS (SELECT FROM tidegate.outbox o WHERE o.message_id = 'compensate.' || p_payment) THEN
        RETURN tidegate.answer_with(v_row, 'payment_used', false); -- it is on its way back
    END IF;
    IF NOT tidegate.costs(v_row, p_amount, p_currency) THEN
        RETURN tidegate.answer_with(v_row, 'amount_mismatch', false);
    END IF;
    UPDATE tidegate.reservations r
       SET state = 'confirmed', confirmed_at = date_trunc('milliseconds', clock_timestamp()), payment_id = p_payment,
           order_id = p_order, amount_minor = p_amount, currency = p_currency, obeyed_at = NULL, obeyed_epoch = 0
     WHERE r.id = p_id AND r.state = 'pending'
    RETURNING * INTO STRICT v_row;
    INSERT INTO tidegate.outbox (message_id, sale, generation, kind, reservation_id, order_id, payment_id, amount_minor,
                                 currency, at)
    VALUES (p_id || '.confirmed', v_row.sale, v_row.generation, 'confirmed', p_id, p_order, p_payment, p_amount, p_currency,
            v_row.confirmed_at);
    RETURN tidegate.answer_with(v_row, '', false);
END $$;

-- Payment begins: the later of the deadline and now + extend_ms. Counts only when it moves the deadline.
CREATE FUNCTION tidegate.extend_reservation(p_id text) RETURNS tidegate.reservation_answer LANGUAGE plpgsql AS $$
DECLARE
    v_row    tidegate.reservations;
    v_sale   tidegate.sales;
    v_until  timestamptz;
    v_now    timestamptz;
BEGIN
    SELECT * INTO v_row FROM tidegate.reservations r WHERE r.id = p_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN tidegate.refusal('reservation_unknown');
    END IF;
    IF v_row.state <> 'pending' THEN
        RETURN tidegate.answer_with(v_row, CASE v_row.state WHEN 'expired' THEN 'reservation_expired'
            WHEN 'cancelled' THEN 'reservation_cancelled' ELSE 'extension_refused' END, false);
    END IF;
    SELECT * INTO STRICT v_sale FROM tidegate.sales s WHERE s.sale = v_row.sale;
    v_now := clock_timestamp();
    v_until := date_trunc('milliseconds', v_now) + tidegate.span(v_sale.extend_ms);
    IF v_now >= v_row.expires_at THEN
        RETURN tidegate.answer_with(v_row, 'extension_refused', false);
    END IF;
    IF v_until <= v_row.expires_at THEN
        RETURN tidegate.answer_with(v_row, '', true);
    END IF;
    IF v_row.extensions >= v_sale.extensions_max THEN
        RETURN tidegate.answer_with(v_row, 'extension_refused', false);
    END IF;
    UPDATE tidegate.reservations r SET expires_at = v_until, extensions = r.extensions + 1 WHERE r.id = p_id
    RETURNING * INTO STRICT v_row;
    RETURN tidegate.answer_with(v_row, '', false);
END $$;

-- p_user NULL: asked with the service credential. An id nobody recorded is unknown, never a row.
CREATE FUNCTION tidegate.cancel_reservation(p_id text, p_user bytea) RETURNS tidegate.reservation_answer
LANGUAGE plpgsql AS $$
DECLARE
    v_row tidegate.reservations;
BEGIN
    SELECT * INTO v_row FROM tidegate.reservations r WHERE r.id = p_id AND (p_user IS NULL OR r.user_id = p_user)
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN tidegate.refusal('reservation_unknown');
    END IF;
    IF v_row.state = 'cancelled' THEN
        RETURN tidegate.answer_with(v_row, '', true);
    END IF;
    IF v_row.state = 'expired' THEN
        RETURN tidegate.answer_with(v_row, 'reservation_expired', false);
    END IF;
    UPDATE tidegate.reservations r
       SET state = 'cancelled', ended_at = date_trunc('milliseconds', clock_timestamp()), obeyed_at = NULL, obeyed_epoch = 0
     WHERE r.id = p_id
    RETURNING * INTO STRICT v_row;
    UPDATE tidegate.holdings h SET live = false WHERE h.reservation_id = p_id AND h.live;
    INSERT INTO tidegate.outbox (message_id, sale, generation, kind, reservation_id, order_id, payment_id, amount_minor,
                                 currency, at)
    VALUES (p_id || '.cancelled', v_row.sale, v_row.generation, 'cancelled', p_id, coalesce(v_row.order_id, ''),
            coalesce(v_row.payment_id, ''), coalesce(v_row.amount_minor, 0), coalesce(v_row.currency, ''), v_row.ended_at);
    RETURN tidegate.answer_with(v_row, '', false);
END $$;

-- Of these ids, those that are pending past deadline + grace become expired.
CREATE FUNCTION tidegate.expire_ids(p_sale text, p_ids text[]) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    v_now timestamptz;
BEGIN
    PERFORM FROM tidegate.reservations r WHERE r.id = ANY (p_ids) AND r.sale = p_sale AND r.state = 'pending'
      ORDER BY r.id FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    WITH lapsed AS (
        UPDATE tidegate.reservations r
           SET state = 'expired', ended_at = date_trunc('milliseconds', v_now), obeyed_at = NULL, obeyed_epoch = 0
          FROM tidegate.sales s
         WHERE r.id = ANY (p_ids) AND r.sale = p_sale AND s.sale = r.sale AND r.state = 'pending'
           AND r.expires_at + tidegate.span(s.grace_ms) <= v_now
        RETURNING r.id, r.generation, r.ended_at
    ), freed AS (
        UPDATE tidegate.holdings h SET live = false FROM lapsed l WHERE h.reservation_id = l.id AND h.live
    )
    INSERT INTO tidegate.outbox (message_id, sale, generation, kind, reservation_id, at)
    SELECT l.id || '.expired', p_sale, l.generation, 'expired', l.id, l.ended_at FROM lapsed l;
END $$;

-- Verdicts on what has lapsed. Tombstones bury holds the gate named and the ledger never saw: only under the fence and
-- only for the present epoch, else nothing is done. The first row (id '') carries reason and epoch; one row per id follows.
-- A row that cannot be expired keeps its state and does not keep its neighbours from theirs.
CREATE FUNCTION tidegate.expire_reservations(
    p_sale text, p_generation bigint, p_epoch bigint, p_ids text[], p_tomb_ids text[], p_tomb_users bytea[],
    p_tomb_places bytea[], p_tomb_windows bigint[], p_tomb_digests bytea[])
RETURNS TABLE (id text, state text, reason text, epoch bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    v_sale tidegate.sales;
    v_now  timestamptz;
    v_id   text;
    v_all  text[] := p_ids || p_tomb_ids;
BEGIN
    IF cardinality(p_tomb_ids) > 0 THEN
        PERFORM tidegate.fence_shared(p_sale);
    END IF;
    SELECT * INTO v_sale FROM tidegate.sales s WHERE s.sale = p_sale;
    IF NOT FOUND THEN
        RETURN QUERY SELECT '', '', 'sale_unknown', 0::bigint;
        RETURN;
    END IF;
    IF cardinality(p_tomb_ids) > 0 AND (p_epoch <> v_sale.epoch OR p_generation <> v_sale.generation) THEN
        RETURN QUERY SELECT '', '', 'stale_epoch', v_sale.epoch;
        RETURN;
    END IF;
    v_now := date_trunc('milliseconds', clock_timestamp());
    INSERT INTO tidegate.reservations (id, sale, generation, user_id, place, pass_window, digest, epoch, state, tombstone,
                                       created_at, expires_at, ended_at)
    SELECT t.id, p_sale, v_sale.generation, t.user_id, t.place, t.pass_window, t.digest, v_sale.epoch, 'expired', true,
           v_now, v_now, v_now
      FROM unnest(p_tomb_ids, p_tomb_users, p_tomb_places, p_tomb_windows, p_tomb_digests)
           AS t (id, user_id, place, pass_window, digest)
     ORDER BY t.id
    ON CONFLICT ON CONSTRAINT reservations_pkey DO NOTHING;
    BEGIN
        PERFORM tidegate.expire_ids(p_sale, v_all);
    EXCEPTION WHEN integrity_constraint_violation OR raise_exception OR data_exception THEN
        FOR v_id IN SELECT x FROM unnest(v_all) AS x ORDER BY x LOOP
            BEGIN
                PERFORM tidegate.expire_ids(p_sale, ARRAY[v_id]);
            EXCEPTION WHEN integrity_constraint_violation OR raise_exception OR data_exception THEN
                RAISE WARNING 'reservation % cannot be expired: %', v_id, SQLERRM;
            END;
        END LOOP;
    END;
    RETURN QUERY SELECT '', '', '', v_sale.epoch;
    RETURN QUERY SELECT r.id, r.state, '', 0::bigint FROM tidegate.reservations r
                  WHERE r.id = ANY (v_all) AND r.sale = p_sale;
END $$;

-- The gate of p_epoch did what these verdicts order. Another epoch's gate, or an order that is no longer the verdict, is not
-- taken. Returns how many were stored.
CREATE FUNCTION tidegate.obeyed_orders(p_sale text, p_epoch bigint, p_ids text[], p_kinds text[])
RETURNS TABLE (reason text, stored integer)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    v_epoch bigint;
    v_count integer;
BEGIN
    SELECT s.epoch INTO v_epoch FROM tidegate.sales s WHERE s.sale = p_sale;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'sale_unknown', 0;
        RETURN;
    END IF;
    IF v_epoch <> p_epoch THEN
        RETURN QUERY SELECT 'stale_epoch', 0;
        RETURN;
    END IF;
    PERFORM FROM tidegate.reservations r WHERE r.id = ANY (p_ids) AND r.sale = p_sale ORDER BY r.id FOR NO KEY UPDATE;
    UPDATE tidegate.reservations r
       SET obeyed_at = date_trunc('milliseconds', clock_timestamp()), obeyed_epoch = p_epoch,
           restocked_at = CASE WHEN o.kind = 'release'
                               THEN coalesce(r.restocked_at, date_trunc('milliseconds', clock_timestamp())) END
      FROM (SELECT DISTINCT x.id, x.kind FROM unnest(p_ids, p_kinds) AS x (id, kind)) o
     WHERE r.id = o.id AND r.sale = p_sale AND r.obeyed_epoch < p_epoch
       AND ((o.kind = 'settle' AND r.state = 'confirmed') OR (o.kind = 'release' AND r.state IN ('expired', 'cancelled')));
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN QUERY SELECT '', v_count;
END $$;

-- What the sweeper has to carry: pending past deadline + grace (lapsed), verdicts no gate of this epoch has obeyed (settle,
-- release). Orders follow the caller's cursor by id; lapsed ids go round from p_lapsed_after, so that rows nobody can expire
-- do not hide the others. The first row (kind '') is the header.
CREATE FUNCTION tidegate.due_work(p_sale text, p_orders_after text, p_lapsed_after text, p_limit integer)
RETURNS TABLE (kind text, id text, epoch bigint, generation bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    v_sale tidegate.sales;
BEGIN
    SELECT * INTO v_sale FROM tidegate.sales s WHERE s.sale = p_sale;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT '', '', v_sale.epoch, v_sale.generation;
    RETURN QUERY
    SELECT 'lapsed', r.id, 0::bigint, 0::bigint FROM tidegate.reservations r
     WHERE r.sale = p_sale AND r.state = 'pending'
       AND r.expires_at <= clock_timestamp() - tidegate.span(v_sale.grace_ms)
     ORDER BY r.id <= p_lapsed_after, r.id LIMIT p_limit;
    RETURN QUERY
    SELECT CASE WHEN r.state = 'confirmed' THEN 'settle' ELSE 'release' END, r.id, 0::bigint, 0::bigint
      FROM tidegate.reservations r
     WHERE r.sale = p_sale AND r.generation = v_sale.generation AND r.state <> 'pending' AND r.obeyed_epoch < v_sale.epoch
       AND r.id > p_orders_after
     ORDER BY r.id LIMIT p_limit;
END $$;

-- Everything a gate of this epoch has to know, by id. First row (id '') is the header.
CREATE FUNCTION tidegate.snapshot_page(p_sale text, p_epoch bigint, p_after text, p_limit integer)
RETURNS TABLE (id text, reason text, epoch bigint, state text, user_id bytea, place bytea, pass_window bigint, digest bytea,
               expires_ms bigint, units text, slots text)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    v_sale tidegate.sales;
BEGIN
    SELECT * INTO v_sale FROM tidegate.sales s WHERE s.sale = p_sale;
    IF NOT FOUND OR v_sale.epoch <> p_epoch THEN
        RETURN QUERY SELECT '', CASE WHEN v_sale.sale IS NULL THEN 'sale_unknown' ELSE 'stale_epoch' END,
            coalesce(v_sale.epoch, 0), '', ''::bytea, ''::bytea, 0::bigint, ''::bytea, 0::bigint, '', '';
        RETURN;
    END IF;
    RETURN QUERY SELECT '', '', v_sale.epoch, '', ''::bytea, ''::bytea, 0::bigint, ''::bytea, 0::bigint, '', '';
    RETURN QUERY
    SELECT r.id, '', 0::bigint, r.state, r.user_id, r.place, r.pass_window, r.digest, tidegate.to_ms(r.expires_at),
           tidegate.units_text(r.id, true), tidegate.slots_text(r.id)
      FROM tidegate.reservations r
     WHERE r.sale = p_sale AND r.generation = v_sale.generation AND r.id > p_after
     ORDER BY r.id LIMIT p_limit;
END $$;
