-- SPDX-License-Identifier: Apache-2.0
-- What an auditor asks: the exported log of one shard and epoch (0: the present one), after a sequence; p_last > 0: at most so
-- many, the newest. First row is the header: reason, and the epoch as its sequence. Reads only.
CREATE FUNCTION tidegate.audit_page(p_sale text, p_epoch bigint, p_shard integer, p_after bigint, p_last integer, p_limit integer)
RETURNS TABLE (reason text, sequence bigint, kind text, reservation_id text, units text, stock_after bigint, gate_ms bigint,
               source text, hash bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_epoch bigint;
    v_after bigint := p_after;
BEGIN
    SELECT CASE WHEN p_epoch = 0 THEN s.epoch ELSE p_epoch END INTO v_epoch FROM tidegate.sales s WHERE s.sale = p_sale;
    RETURN QUERY SELECT CASE WHEN v_epoch IS NULL THEN 'sale_unknown' ELSE '' END, coalesce(v_epoch, 0), '', '', '', 0::bigint,
                        0::bigint, '', ''::bytea;
    IF p_last > 0 THEN
        SELECT greatest(p_after, coalesce(max(g.sequence), 0) - p_last) INTO v_after
          FROM tidegate.gate_log g WHERE g.sale = p_sale AND g.epoch = v_epoch AND g.shard = p_shard;
    END IF;
    RETURN QUERY
    SELECT '', g.sequence, g.kind, g.reservation_id, g.units, g.stock_after, g.gate_ms, g.source, g.hash
      FROM tidegate.gate_log g
     WHERE g.sale = p_sale AND g.epoch = v_epoch AND g.shard = p_shard AND g.sequence > v_after
     ORDER BY g.sequence LIMIT p_limit;
END $$;

REVOKE ALL ON FUNCTION tidegate.audit_page(text, bigint, integer, bigint, integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidegate.audit_page(text, bigint, integer, bigint, integer, integer) TO tidegate_ledger;
