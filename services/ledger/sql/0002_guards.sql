-- SPDX-License-Identifier: Apache-2.0
-- What no role may do, not even by mistake: delete, rewrite the logs, revive what has ended.

CREATE FUNCTION tidegate.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of tidegate.% is refused: the ledger only adds', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;

DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['sales', 'sale_items', 'reservations', 'holdings', 'gate_log', 'outbox', 'publisher',
                                   'checks', 'control_log', 'rosters', 'draws', 'schema_migrations'] LOOP
        EXECUTE format('CREATE TRIGGER no_delete BEFORE DELETE OR TRUNCATE ON tidegate.%I
                        FOR EACH STATEMENT EXECUTE FUNCTION tidegate.refuse_change()', v_table);
    END LOOP;
    FOREACH v_table IN ARRAY ARRAY['sale_items', 'gate_log', 'checks', 'control_log', 'rosters', 'schema_migrations'] LOOP
        EXECUTE format('CREATE TRIGGER no_update BEFORE UPDATE ON tidegate.%I
                        FOR EACH STATEMENT EXECUTE FUNCTION tidegate.refuse_change()', v_table);
    END LOOP;
END $$;

-- A verdict is final: pending -> anything, confirmed -> cancelled, nothing else. What a reservation is never changes.
CREATE FUNCTION tidegate.guard_reservation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (OLD.state = NEW.state OR OLD.state = 'pending' OR (OLD.state = 'confirmed' AND NEW.state = 'cancelled')) THEN
        RAISE EXCEPTION 'reservation % is %: it cannot become %', OLD.id, OLD.state, NEW.state
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (OLD.id, OLD.sale, OLD.generation, OLD.user_id, OLD.place, OLD.epoch, OLD.tombstone, OLD.created_at)
       IS DISTINCT FROM
       (NEW.id, NEW.sale, NEW.generation, NEW.user_id, NEW.place, NEW.epoch, NEW.tombstone, NEW.created_at)
       OR (OLD.payment_id IS NOT NULL AND OLD.payment_id IS DISTINCT FROM NEW.payment_id)
       OR (OLD.order_id IS NOT NULL AND OLD.order_id IS DISTINCT FROM NEW.order_id)
       OR NEW.expires_at < OLD.expires_at THEN
        RAISE EXCEPTION 'reservation %: what was recorded cannot be changed', OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON tidegate.reservations
    FOR EACH ROW EXECUTE FUNCTION tidegate.guard_reservation();

CREATE FUNCTION tidegate.guard_holding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NOT OLD.live AND NEW.live)
       OR (OLD.reservation_id, OLD.sale, OLD.generation, OLD.item, OLD.unit, OLD.user_id, OLD.user_slot)
          IS DISTINCT FROM
          (NEW.reservation_id, NEW.sale, NEW.generation, NEW.item, NEW.unit, NEW.user_id, NEW.user_slot) THEN
        RAISE EXCEPTION 'holding of %: it can only end', OLD.reservation_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON tidegate.holdings
    FOR EACH ROW EXECUTE FUNCTION tidegate.guard_holding();

-- A draw is drawn once: what is known of it stays as it is.
CREATE FUNCTION tidegate.guard_draw() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.sale, OLD.generation, OLD.commitment, OLD.count, OLD.index_at_open, OLD.root, OLD.frozen_at)
       IS DISTINCT FROM
       (NEW.sale, NEW.generation, NEW.commitment, NEW.count, NEW.index_at_open, NEW.root, NEW.frozen_at)
       OR (OLD.beacon IS NOT NULL AND OLD.beacon IS DISTINCT FROM NEW.beacon)
       OR (OLD.secret IS NOT NULL AND (OLD.beacon, OLD.secret, OLD.seed, OLD.revealed_at)
                                      IS DISTINCT FROM (NEW.beacon, NEW.secret, NEW.seed, NEW.revealed_at)) THEN
        RAISE EXCEPTION 'the draw of %, generation %, cannot be changed', OLD.sale, OLD.generation
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON tidegate.draws
    FOR EACH ROW EXECUTE FUNCTION tidegate.guard_draw();

-- Epochs and control sequences never go back, whatever happens to a sale.
CREATE FUNCTION tidegate.guard_sale() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.sale <> OLD.sale OR NEW.epoch < OLD.epoch OR NEW.generation < OLD.generation
       OR NEW.control_seq < OLD.control_seq
       OR (OLD.stage = 'closed' AND NEW.stage <> 'closed' AND NEW.generation = OLD.generation) THEN
        RAISE EXCEPTION 'sale %: it cannot go back', OLD.sale USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON tidegate.sales FOR EACH ROW EXECUTE FUNCTION tidegate.guard_sale();
