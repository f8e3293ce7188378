-- SPDX-License-Identifier: Apache-2.0
-- What an operator asks after an alarm: since when, what happened, who is affected. Reads only.

-- When what is to be told began: the last resume; for a sale that runs again, the one before.
CREATE FUNCTION tidegate.incident_since(p_sale tidegate.sales) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT c.judged_at FROM tidegate.control_log c
                      WHERE c.sale = p_sale.sale AND c.kind = 'resume' AND c.reason = '' AND c.judged_at > p_sale.created_at
                      ORDER BY c.judged_at DESC OFFSET CASE WHEN cardinality(p_sale.pause_ids) > 0 THEN 0 ELSE 1 END LIMIT 1),
                    p_sale.created_at)
$$;

-- Commands, the pauses' causes, and every round that ended otherwise than the one before of the same checker.
CREATE FUNCTION tidegate.incident_timeline(p_sale tidegate.sales, p_since timestamptz)
RETURNS TABLE (at timestamptz, kind text, detail text) LANGUAGE sql STABLE AS $$
    SELECT c.judged_at, 'command', c.kind || ' by ' || c.key_id || CASE WHEN c.reason = '' THEN '' ELSE ', refused' END || ': '
           || c.detail
      FROM tidegate.control_log c WHERE c.sale = p_sale.sale AND c.judged_at >= p_since
    UNION ALL
    SELECT o.at, o.kind, o.detail
      FROM tidegate.outbox o
     WHERE o.sale = p_sale.sale AND o.kind IN ('paused', 'resumed', 'sold_out') AND o.at >= p_since
    UNION ALL
    SELECT p_sale.armed_at, 'armed', format('gate of epoch %s on Redis run %s', p_sale.epoch, p_sale.run_id)
     WHERE p_sale.armed_at >= p_since
    UNION ALL
    SELECT k.stored_at, 'check', k.outcome || ' by ' || k.instance || CASE WHEN k.detail = '' THEN '' ELSE ': ' || k.detail END
      FROM (SELECT c.*, lag(c.outcome || c.detail, 1, 'clean') OVER (PARTITION BY c.epoch, c.instance ORDER BY c.id) AS before
              FROM tidegate.checks c WHERE c.sale = p_sale.sale AND c.stored_at >= p_since) k
     WHERE k.outcome || k.detail <> k.before
$$;

-- named: an alarm names it. row_lost: the gate granted it and its buyer was told, the ledger lacks it. never_recorded: the gate
-- granted it, nobody was told. verdict_waits: the gate has not obeyed its verdict.
CREATE FUNCTION tidegate.incident_affected(p_sale tidegate.sales, p_since timestamptz)
RETURNS TABLE (id text, kind text, detail text) LANGUAGE sql STABLE AS $$
    WITH named AS (
        SELECT m.id[1] AS id, string_agg(DISTINCT substring(part.text FROM '^[A-Z0-9]+'), ',') AS checks
          FROM tidegate.checks c, regexp_split_to_table(c.detail, '; ') AS part (text),
               regexp_matches(part.text, 'res_[0-9A-HJKMNP-TV-Z]{26}', 'g') AS m (id)
         WHERE c.sale = p_sale.sale AND c.outcome = 'alarm' AND c.stored_at >= p_since GROUP BY 1),
    unrecorded AS (
        SELECT DISTINCT g.reservation_id AS id FROM tidegate.gate_log g
         WHERE g.sale = p_sale.sale AND g.kind = 'hold' AND g.stored_at >= p_sale.created_at
           AND g.stored_at < clock_timestamp() - interval '5 seconds'
           AND NOT EXISTS (SELECT FROM tidegate.reservations r WHERE r.id = g.reservation_id))
    SELECT coalesce(n.id, u.id),
           CASE WHEN EXISTS (SELECT FROM tidegate.reservations r WHERE r.id = coalesce(n.id, u.id)) THEN 'named'
                WHEN 'E' = ANY (string_to_array(n.checks, ',')) OR EXISTS (
                     SELECT FROM tidegate.outbox o WHERE o.reservation_id = coalesce(n.id, u.id)) THEN 'row_lost'
                ELSE 'never_recorded' END,
           coalesce(n.checks, '')
      FROM named n FULL JOIN unrecorded u ON u.id = n.id
    UNION ALL
    SELECT r.id, 'verdict_waits', '' FROM tidegate.reservations r
     WHERE p_sale.armed AND r.sale = p_sale.sale AND r.generation = p_sale.generation AND r.state <> 'pending'
       AND r.obeyed_epoch < p_sale.epoch AND coalesce(r.ended_at, r.confirmed_at) < clock_timestamp() - interval '5 seconds'
       AND p_sale.armed_at < clock_timestamp() - interval '5 seconds' AND NOT EXISTS (SELECT FROM named n WHERE n.id = r.id)
$$;

-- One page of both, after a key. First row (key '') is the header: detail is the reason or the last round's word; the counts are
-- units, units pending, units confirmed, reservations live, reservations ended.
CREATE FUNCTION tidegate.incident_page(p_sale text, p_after text, p_limit integer)
RETURNS TABLE (key text, at_ms bigint, kind text, detail text, id text, state text, expires_ms bigint, user_id bytea, units text,
               counts bigint[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_sale  tidegate.sales;
    v_since timestamptz;
BEGIN
    SELECT * INTO v_sale FROM tidegate.sales s WHERE s.sale = p_sale;
    IF NOT FOUND THEN
        RETURN QUERY SELECT '', 0::bigint, 'sale_unknown', '', '', '', 0::bigint, ''::bytea, '', '{0,0,0,0,0}'::bigint[];
        RETURN;
    END IF;
    v_since := tidegate.incident_since(v_sale);
    RETURN QUERY
    SELECT '', tidegate.to_ms(v_since), '',
           coalesce((SELECT c.outcome || CASE WHEN c.detail = '' THEN '' ELSE ': ' || c.detail END FROM tidegate.checks c
                      WHERE c.sale = p_sale AND c.epoch = v_sale.epoch ORDER BY c.id DESC LIMIT 1), ''),
           '', '', 0::bigint, ''::bytea, '',
           ARRAY[(SELECT sum(i.units) FROM tidegate.sale_items i WHERE i.sale = p_sale AND i.generation = v_sale.generation),
                 t.pending, t.confirmed, t.live, t.ended]
      FROM (SELECT coalesce(sum(h.n) FILTER (WHERE r.state = 'pending'), 0)::bigint AS pending,
                   coalesce(sum(h.n) FILTER (WHERE r.state = 'confirmed'), 0)::bigint AS confirmed,
                   count(*) FILTER (WHERE r.state IN ('pending', 'confirmed')) AS live,
                   count(*) FILTER (WHERE r.state NOT IN ('pending', 'confirmed')) AS ended
              FROM tidegate.reservations r
              LEFT JOIN (SELECT x.reservation_id, count(*) AS n FROM tidegate.holdings x
                          WHERE x.sale = p_sale AND x.generation = v_sale.generation AND x.live GROUP BY 1) h
                ON h.reservation_id = r.id
             WHERE r.sale = p_sale AND r.generation = v_sale.generation) t;
    RETURN QUERY
    SELECT p.key, tidegate.to_ms(p.at), p.kind, p.detail, coalesce(p.id, ''), coalesce(r.state, ''),
           coalesce(tidegate.to_ms(r.expires_at), 0), coalesce(r.user_id, ''::bytea),
           CASE WHEN r.id IS NOT NULL THEN tidegate.units_text(r.id, false)
                ELSE coalesce((SELECT g.units FROM tidegate.gate_log g
                                WHERE g.sale = p_sale AND g.reservation_id = p.id ORDER BY g.epoch, g.sequence LIMIT 1), '') END,
           '{0,0,0,0,0}'::bigint[]
      FROM (SELECT (format('t%s.%s', lpad(tidegate.to_ms(t.at)::text, 15, '0'),
                           lpad((row_number() OVER (ORDER BY t.at, t.kind, t.detail))::text, 9, '0'))) COLLATE "C" AS key,
                   t.at, t.kind, t.detail, NULL AS id
              FROM tidegate.incident_timeline(v_sale, v_since) t
            UNION ALL
            SELECT ('u' || a.id) COLLATE "C", v_since, a.kind, a.detail, a.id FROM tidegate.incident_affected(v_sale, v_since) a) p
      LEFT JOIN tidegate.reservations r ON r.id = p.id
     WHERE p.key > p_after ORDER BY p.key LIMIT p_limit;
END $$;

REVOKE ALL ON FUNCTION tidegate.incident_since(tidegate.sales), tidegate.incident_timeline(tidegate.sales, timestamptz),
    tidegate.incident_affected(tidegate.sales, timestamptz), tidegate.incident_page(text, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidegate.incident_since(tidegate.sales), tidegate.incident_timeline(tidegate.sales, timestamptz),
    tidegate.incident_affected(tidegate.sales, timestamptz), tidegate.incident_page(text, text, integer) TO tidegate_ledger;
