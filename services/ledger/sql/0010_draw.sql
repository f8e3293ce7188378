-- SPDX-License-Identifier: Apache-2.0
-- The draw. Its roster is a log of entrants, appended by the queue as early tickets are given (an entrant may appear twice;
-- it is one entrant all the same); what was drawn is frozen once and revealed once, per generation, for good.

-- How many entrants are stored in all.
CREATE FUNCTION tidegate.roster_end(p_sale text, p_generation bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT r.first + octet_length(r.entrants) / 16 FROM tidegate.rosters r
                      WHERE r.sale = p_sale AND r.generation = p_generation ORDER BY r.first DESC LIMIT 1), 0)
$$;

-- What keeps a roster or draw from changing: '' for nothing. Takes the lock under which both change.
CREATE FUNCTION tidegate.draw_fault(p_sale text, p_generation bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(tidegate.lock_key('roster', p_sale));
    IF NOT EXISTS (SELECT FROM tidegate.sales s WHERE s.sale = p_sale AND s.generation = p_generation
                                                  AND s.queue_order <> 'fifo') THEN
        RETURN 'sale_unknown';
    END IF;
    RETURN '';
END $$;

-- Entrants that continue the stored ones. Once the roster is frozen nobody comes in any more.
CREATE FUNCTION tidegate.append_roster(p_sale text, p_generation bigint, p_first bigint, p_entrants bytea)
RETURNS TABLE (reason text, stored bigint, entrants bytea) LANGUAGE plpgsql AS $$
DECLARE
    v_fault text := tidegate.draw_fault(p_sale, p_generation);
    v_end   bigint := tidegate.roster_end(p_sale, p_generation);
BEGIN
    IF v_fault <> '' THEN
        RETURN QUERY SELECT v_fault, 0::bigint, ''::bytea;
    ELSIF EXISTS (SELECT FROM tidegate.draws d WHERE d.sale = p_sale AND d.generation = p_generation) THEN
        RETURN QUERY SELECT 'not_allowed_now', v_end, ''::bytea;
    ELSIF v_end <> p_first THEN
        RETURN QUERY SELECT 'gap', v_end, ''::bytea;
    ELSE
        INSERT INTO tidegate.rosters (sale, generation, first, entrants, stored_at)
        VALUES (p_sale, p_generation, p_first, p_entrants, clock_timestamp());
        RETURN QUERY SELECT '', v_end + octet_length(p_entrants) / 16, ''::bytea;
    END IF;
END $$;

-- The stored page that begins at p_first; without entrants at the end.
CREATE FUNCTION tidegate.read_roster(p_sale text, p_generation bigint, p_first bigint)
RETURNS TABLE (reason text, stored bigint, entrants bytea) LANGUAGE sql STABLE AS $$
    SELECT '', tidegate.roster_end(p_sale, p_generation),
           coalesce((SELECT r.entrants FROM tidegate.rosters r
                      WHERE r.sale = p_sale AND r.generation = p_generation AND r.first = p_first), '')
$$;

-- The roster is closed: p_stored says that whoever closed it knew all of it. The same again is no second freeze.
CREATE FUNCTION tidegate.freeze_draw(p_sale text, p_generation bigint, p_stored bigint, p_count bigint, p_index bigint,
                                     p_root bytea)
RETURNS TABLE (reason text, stored bigint, entrants bytea) LANGUAGE plpgsql AS $$
DECLARE
    v_fault text := tidegate.draw_fault(p_sale, p_generation);
    v_end   bigint := tidegate.roster_end(p_sale, p_generation);
    v_draw  tidegate.draws;
BEGIN
    SELECT * INTO v_draw FROM tidegate.draws d WHERE d.sale = p_sale AND d.generation = p_generation;
    IF v_fault <> '' THEN
        RETURN QUERY SELECT v_fault, 0::bigint, ''::bytea;
    ELSIF FOUND THEN
        RETURN QUERY SELECT CASE WHEN v_draw.count = p_count AND v_draw.root = p_root THEN '' ELSE 'not_allowed_now' END,
                            v_end, ''::bytea;
    ELSIF v_end <> p_stored THEN
        RETURN QUERY SELECT 'gap', v_end, ''::bytea;
    ELSIF EXISTS (SELECT FROM tidegate.sales s WHERE s.sale = p_sale AND s.opened_at IS NULL) THEN
        RETURN QUERY SELECT 'not_allowed_now', v_end, ''::bytea;
    ELSE
        INSERT INTO tidegate.draws (sale, generation, commitment, count, index_at_open, root, frozen_at)
        SELECT p_sale, p_generation, s.commitment, p_count, p_index, p_root, clock_timestamp()
          FROM tidegate.sales s WHERE s.sale = p_sale;
        RETURN QUERY SELECT '', v_end, ''::bytea;
    END IF;
END $$;

-- The secret is told, after the roster is frozen and the beacon, if one was promised, is known.
CREATE FUNCTION tidegate.reveal_draw(p_sale text, p_generation bigint, p_secret bytea, p_beacon bytea, p_seed bytea)
RETURNS TABLE (reason text, stored bigint, entrants bytea) LANGUAGE plpgsql AS $$
DECLARE
    v_fault text := tidegate.draw_fault(p_sale, p_generation);
    v_draw  tidegate.draws;
    v_name  text := (SELECT s.beacon FROM tidegate.sales s WHERE s.sale = p_sale);
BEGIN
    SELECT * INTO v_draw FROM tidegate.draws d WHERE d.sale = p_sale AND d.generation = p_generation;
    IF v_fault <> '' THEN
        RETURN QUERY SELECT v_fault, 0::bigint, ''::bytea;
    ELSIF NOT FOUND OR sha256(p_secret) <> v_draw.commitment OR coalesce(v_draw.beacon, '') <> p_beacon
          OR (v_name <> '' AND v_draw.beacon IS NULL) OR (v_draw.seed IS NOT NULL AND v_draw.seed <> p_seed) THEN
        RETURN QUERY SELECT 'not_allowed_now', 0::bigint, ''::bytea;
    ELSE
        UPDATE tidegate.draws d
           SET secret = p_secret, seed = p_seed, revealed_at = clock_timestamp()
         WHERE d.sale = p_sale AND d.generation = p_generation AND d.secret IS NULL;
        RETURN QUERY SELECT '', 0::bigint, ''::bytea;
    END IF;
END $$;

-- The value of the promised beacon, once, and only when nobody can come in any more.
CREATE FUNCTION tidegate.judge_beacon(p_sale tidegate.sales, p_value text, p_plan boolean) RETURNS tidegate.judgement
LANGUAGE plpgsql AS $$
DECLARE
    v_draw tidegate.draws;
BEGIN
    IF p_sale.beacon = '' THEN
        RETURN tidegate.judged('not_allowed_now', 'the sale promised no beacon');
    END IF;
    IF p_value !~ '^([0-9a-f]{2}){1,32}$' THEN
        RETURN tidegate.judged('malformed', 'expected the value as 1 to 32 bytes in lower-case hex');
    END IF;
    PERFORM pg_advisory_xact_lock(tidegate.lock_key('roster', p_sale.sale));
    SELECT * INTO v_draw FROM tidegate.draws d WHERE d.sale = p_sale.sale AND d.generation = p_sale.generation;
    IF NOT FOUND THEN
        RETURN tidegate.judged('not_allowed_now', 'the roster is not closed yet: a beacon known before would count for nothing');
    END IF;
    IF v_draw.beacon IS NOT NULL THEN
        RETURN tidegate.judged(CASE WHEN v_draw.beacon = decode(p_value, 'hex') THEN '' ELSE 'not_allowed_now' END,
                               'known already: ' || encode(v_draw.beacon, 'hex'));
    END IF;
    IF NOT p_plan THEN
        UPDATE tidegate.draws d SET beacon = decode(p_value, 'hex')
         WHERE d.sale = p_sale.sale AND d.generation = p_sale.generation;
    END IF;
    RETURN tidegate.judged('', 'the draw is mixed with it');
END $$;

REVOKE ALL ON FUNCTION tidegate.roster_end(text, bigint), tidegate.draw_fault(text, bigint),
    tidegate.append_roster(text, bigint, bigint, bytea), tidegate.read_roster(text, bigint, bigint),
    tidegate.freeze_draw(text, bigint, bigint, bigint, bigint, bytea),
    tidegate.reveal_draw(text, bigint, bytea, bytea, bytea), tidegate.judge_beacon(tidegate.sales, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidegate.roster_end(text, bigint), tidegate.draw_fault(text, bigint),
    tidegate.append_roster(text, bigint, bigint, bytea), tidegate.read_roster(text, bigint, bigint),
    tidegate.freeze_draw(text, bigint, bigint, bigint, bigint, bytea),
    tidegate.reveal_draw(text, bigint, bytea, bytea, bytea), tidegate.judge_beacon(tidegate.sales, text, boolean)
    TO tidegate_ledger;
