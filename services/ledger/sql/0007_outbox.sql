-- SPDX-License-Identifier: Apache-2.0
-- Events on their way out. At most one instance publishes at a time, by a lease that only saves work.

CREATE FUNCTION tidegate.outbox_page(p_instance text, p_limit integer)
RETURNS TABLE (id bigint, message_id text, sale text, generation bigint, kind text, reservation_id text, user_id bytea,
               units text, order_id text, payment_id text, amount_minor bigint, currency text, detail text, at_ms bigint)
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM tidegate.outbox o WHERE o.published_at IS NULL) THEN
        RETURN;
    END IF;
    UPDATE tidegate.publisher p SET instance = p_instance, until = clock_timestamp() + interval '5 seconds'
     WHERE p.instance = p_instance OR p.until < clock_timestamp();
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT o.id, o.message_id, o.sale, o.generation, o.kind, o.reservation_id, coalesce(r.user_id, ''::bytea),
           tidegate.units_text(o.reservation_id, false), o.order_id, o.payment_id, o.amount_minor, o.currency, o.detail,
           tidegate.to_ms(o.at)
      FROM tidegate.outbox o LEFT JOIN tidegate.reservations r ON r.id = o.reservation_id
     WHERE o.published_at IS NULL ORDER BY o.id LIMIT p_limit;
END $$;

CREATE FUNCTION tidegate.outbox_published(p_ids bigint[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_count integer;
BEGIN
    UPDATE tidegate.outbox o SET published_at = clock_timestamp() WHERE o.id = ANY (p_ids) AND o.published_at IS NULL;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;

-- What readiness and doctor ask: which schema this is, whether it is writable, whether a commit here is a promise.
CREATE FUNCTION tidegate.health()
RETURNS TABLE (version integer, writable boolean, sound boolean, now_ms bigint, configuration text) LANGUAGE sql STABLE AS $$
    SELECT (SELECT max(m.version) FROM tidegate.schema_migrations m), NOT pg_is_in_recovery(), NOT tidegate.unsound(),
           tidegate.to_ms(clock_timestamp()),
           (SELECT string_agg(c.name || ' ' || c.value || chr(10), '' ORDER BY c.name) FROM tidegate.configuration() c)
$$;
