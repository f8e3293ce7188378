-- SPDX-License-Identifier: Apache-2.0
-- The book of record. Ids are text compared bytewise (collation "C"); users are opaque bytes. Times are timestamptz cut to
-- milliseconds, so that what is stored is what is told. Constraints, not code, make an oversell impossible to store:
-- one live holding per unit, one per buyer's slot, unit < units, slot < limit, the copies guarded by a composite key.

CREATE SCHEMA IF NOT EXISTS tidegate;

CREATE TABLE tidegate.sales (
    sale                text COLLATE "C" PRIMARY KEY CHECK (sale ~ '^[A-Za-z0-9_-]{1,64}$'),
    generation          bigint NOT NULL CHECK (generation >= 1),
    -- definition
    opens_at            timestamptz NOT NULL,
    queue_order         text NOT NULL,
    limit_per_buyer     integer NOT NULL CHECK (limit_per_buyer >= 1),
    hold_ms             bigint NOT NULL CHECK (hold_ms >= 1),
    grace_ms            bigint NOT NULL CHECK (grace_ms >= 0),
    extend_ms           bigint NOT NULL CHECK (extend_ms >= 0),
    extensions_max      integer NOT NULL CHECK (extensions_max >= 0),
    pace_start_milli    bigint NOT NULL CHECK (pace_start_milli >= 0),
    pace_min_milli      bigint NOT NULL CHECK (pace_min_milli >= 0),
    pace_max_milli      bigint NOT NULL CHECK (pace_max_milli >= pace_min_milli),
    proof_every_ms      bigint NOT NULL CHECK (proof_every_ms >= 1),
    proof_lease_ms      bigint NOT NULL CHECK (proof_lease_ms >= 1),
    remaining_bucketed  boolean NOT NULL,
    commitment          bytea NOT NULL DEFAULT '' CHECK (octet_length(commitment) IN (0, 32)), -- of a draw's secret
    beacon              text NOT NULL DEFAULT '', -- name of a draw's beacon, '' = none
    shards              integer NOT NULL CHECK (shards >= 1),
    challenge           integer NOT NULL CHECK (challenge BETWEEN 0 AND 2),
    -- state: `stage` is how far the sale is, `state` what everybody acts on: any active pause comes first
    stage               text NOT NULL DEFAULT 'scheduled' CHECK (stage IN ('scheduled', 'open', 'sold_out', 'closed')),
    pause_ids           text[] NOT NULL DEFAULT '{}',
    pause_causes        text[] NOT NULL DEFAULT '{}',
    lifted_ids          text[] NOT NULL DEFAULT '{}',
    state               text NOT NULL GENERATED ALWAYS AS (
                            CASE WHEN stage = 'closed' THEN 'closed'
                                 WHEN cardinality(pause_ids) > 0 THEN 'paused'
                                 ELSE stage END) STORED,
    control_seq         bigint NOT NULL DEFAULT 1,
    epoch               bigint NOT NULL CHECK (epoch >= 1),
    armed               boolean NOT NULL DEFAULT false,
    armed_at            timestamptz,
    run_id              text NOT NULL DEFAULT '',
    replication_id      text NOT NULL DEFAULT '',
    system_identifier   text NOT NULL DEFAULT '', -- of this PostgreSQL when the gate was armed
    timeline            text NOT NULL DEFAULT '',
    last_clean_at       timestamptz,
    clean_rounds        integer NOT NULL DEFAULT 0,
    pace_milli          bigint NOT NULL DEFAULT 0 CHECK (pace_milli >= 0),
    opened_at           timestamptz,
    closed_at           timestamptz,
    created_at          timestamptz NOT NULL,
    CHECK (cardinality(pause_ids) = cardinality(pause_causes)),
    CHECK (queue_order = 'fifo' OR commitment <> ''),
    CHECK (NOT armed OR (armed_at IS NOT NULL AND run_id <> ''))
) WITH (fillfactor = 50);

CREATE TABLE tidegate.sale_items (
    sale         text COLLATE "C" NOT NULL REFERENCES tidegate.sales (sale),
    generation   bigint NOT NULL,
    item         integer NOT NULL CHECK (item >= 0),
    sku          text COLLATE "C" NOT NULL,
    units        integer NOT NULL CHECK (units >= 1),
    price_minor  bigint NOT NULL CHECK (price_minor >= 0),
    currency     text COLLATE "C" NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    buyer_limit  integer NOT NULL CHECK (buyer_limit >= 1),
    PRIMARY KEY (sale, generation, item),
    UNIQUE (sale, generation, sku),
    UNIQUE (sale, generation, item, units, buyer_limit)
);

CREATE TABLE tidegate.reservations (
    id            text COLLATE "C" PRIMARY KEY CHECK (id ~ '^res_[0-9A-HJKMNP-TV-Z]{26}$'),
    sale          text COLLATE "C" NOT NULL,
    generation    bigint NOT NULL,
    user_id       bytea NOT NULL CHECK (octet_length(user_id) BETWEEN 1 AND 128),
    place         bytea NOT NULL CHECK (octet_length(place) = 16),
    pass_window   bigint NOT NULL CHECK (pass_window >= 0),
    digest        bytea NOT NULL CHECK (octet_length(digest) = 16),
    epoch         bigint NOT NULL,
    state         text NOT NULL CHECK (state IN ('pending', 'confirmed', 'expired', 'cancelled')),
    tombstone     boolean NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    extensions    integer NOT NULL DEFAULT 0 CHECK (extensions >= 0),
    confirmed_at  timestamptz,
    ended_at      timestamptz,
    payment_id    text COLLATE "C",
    order_id      text COLLATE "C",
    amount_minor  bigint,
    currency      text COLLATE "C",
    obeyed_at     timestamptz,
    obeyed_epoch  bigint NOT NULL DEFAULT 0, -- 0: not obeyed by any gate
    restocked_at  timestamptz,
    CHECK (state <> 'confirmed' OR (confirmed_at IS NOT NULL AND payment_id IS NOT NULL AND order_id IS NOT NULL)),
    CHECK (state IN ('expired', 'cancelled') = (ended_at IS NOT NULL)),
    CHECK (restocked_at IS NULL OR state IN ('expired', 'cancelled')),
    CHECK (NOT tombstone OR state = 'expired')
);
CREATE INDEX reservations_of_sale ON tidegate.reservations (sale, generation);
CREATE INDEX reservations_pending ON tidegate.reservations (sale, expires_at) WHERE state = 'pending';
CREATE INDEX reservations_verdicts ON tidegate.reservations (sale, obeyed_epoch) WHERE state <> 'pending';
CREATE UNIQUE INDEX reservations_payment ON tidegate.reservations (payment_id) WHERE payment_id IS NOT NULL;
CREATE UNIQUE INDEX reservations_order ON tidegate.reservations (order_id) WHERE order_id IS NOT NULL;

-- No foreign key to reservations: both are written by one function, nothing is ever deleted, and the check would lock each
-- new reservation once more (a tenth of the cost of a hold). The checker counts holdings without a reservation.
CREATE TABLE tidegate.holdings (
    reservation_id  text COLLATE "C" NOT NULL,
    sale            text COLLATE "C" NOT NULL,
    generation      bigint NOT NULL,
    item            integer NOT NULL,
    unit            integer NOT NULL,
    units           integer NOT NULL, -- copied from sale_items, guarded by the foreign key
    buyer_limit     integer NOT NULL, -- likewise
    user_id         bytea NOT NULL,
    user_slot       integer NOT NULL,
    live            boolean NOT NULL DEFAULT true,
    PRIMARY KEY (reservation_id, item, unit),
    CONSTRAINT holdings_unit_exists CHECK (unit >= 0 AND unit < units),
    CONSTRAINT holdings_slot_allowed CHECK (user_slot >= 0 AND user_slot < buyer_limit),
    CONSTRAINT holdings_copies FOREIGN KEY (sale, generation, item, units, buyer_limit)
        REFERENCES tidegate.sale_items (sale, generation, item, units, buyer_limit)
);
CREATE UNIQUE INDEX holdings_one_owner ON tidegate.holdings (sale, generation, item, unit) WHERE live;
CREATE UNIQUE INDEX holdings_one_slot ON tidegate.holdings (sale, generation, user_id, user_slot) WHERE live;

-- The gate's audit stream, exported. Gap-free and hash-chained per (sale, epoch, shard); the daemon computes the hashes
-- (services/ledger/chain.h), append_gate_log checks that they continue what is stored.
CREATE TABLE tidegate.gate_log (
    sale            text COLLATE "C" NOT NULL,
    epoch           bigint NOT NULL,
    shard           integer NOT NULL CHECK (shard >= 0),
    sequence        bigint NOT NULL CHECK (sequence >= 1),
    kind            text NOT NULL,
    reservation_id  text COLLATE "C" NOT NULL,
    units           text NOT NULL, -- "item:unit,item:unit"
    stock_after     bigint NOT NULL,
    gate_ms         bigint NOT NULL,
    source          text NOT NULL,
    hash            bytea NOT NULL CHECK (octet_length(hash) = 32),
    stored_at       timestamptz NOT NULL,
    PRIMARY KEY (sale, epoch, shard, sequence)
);

-- Who came before the opening, as they came (0010_draw.sql), and what was drawn.
CREATE TABLE tidegate.rosters (
    sale        text COLLATE "C" NOT NULL,
    generation  bigint NOT NULL,
    first       bigint NOT NULL CHECK (first >= 0),
    entrants    bytea NOT NULL CHECK (octet_length(entrants) BETWEEN 16 AND 16384 AND octet_length(entrants) % 16 = 0),
    stored_at   timestamptz NOT NULL,
    PRIMARY KEY (sale, generation, first)
);

CREATE TABLE tidegate.draws (
    sale           text COLLATE "C" NOT NULL,
    generation     bigint NOT NULL,
    commitment     bytea NOT NULL CHECK (octet_length(commitment) = 32),
    count          bigint NOT NULL CHECK (count >= 0),
    index_at_open  bigint NOT NULL CHECK (index_at_open >= 0),
    root           bytea NOT NULL CHECK (octet_length(root) = 32),
    frozen_at      timestamptz NOT NULL,
    beacon         bytea CHECK (octet_length(beacon) BETWEEN 1 AND 32),
    secret         bytea CHECK (octet_length(secret) = 32 AND sha256(secret) = commitment),
    seed           bytea CHECK (octet_length(seed) = 32),
    revealed_at    timestamptz,
    PRIMARY KEY (sale, generation),
    CHECK ((secret IS NULL) = (seed IS NULL) AND (secret IS NULL) = (revealed_at IS NULL))
);

CREATE TABLE tidegate.outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY, -- order of publication; indexed while it matters
    message_id      text COLLATE "C" PRIMARY KEY,
    sale            text COLLATE "C" NOT NULL,
    generation      bigint NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('held', 'confirmed', 'expired', 'cancelled', 'compensate', 'paused',
                                                  'resumed', 'sold_out')),
    reservation_id  text COLLATE "C" NOT NULL DEFAULT '',
    order_id        text NOT NULL DEFAULT '',
    payment_id      text NOT NULL DEFAULT '',
    amount_minor    bigint NOT NULL DEFAULT 0,
    currency        text NOT NULL DEFAULT '',
    detail          text NOT NULL DEFAULT '',
    at              timestamptz NOT NULL,
    published_at    timestamptz
);
CREATE INDEX outbox_unpublished ON tidegate.outbox (id) WHERE published_at IS NULL;

-- Who publishes the outbox for now. Only saves work: publishing twice is harmless, message ids are the same.
CREATE TABLE tidegate.publisher (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    instance  text NOT NULL,
    until     timestamptz NOT NULL
);
INSERT INTO tidegate.publisher (instance, until) VALUES ('', '-infinity');

CREATE TABLE tidegate.checks (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sale             text COLLATE "C" NOT NULL,
    epoch            bigint NOT NULL,
    instance         text NOT NULL,
    checked_ms       bigint NOT NULL,
    outcome          text NOT NULL CHECK (outcome IN ('clean', 'void', 'alarm')),
    detail           text NOT NULL,
    stock            bigint NOT NULL,
    pending          bigint NOT NULL,
    confirmed        bigint NOT NULL,
    in_flight        bigint NOT NULL,
    release_pending  bigint NOT NULL,
    initial          bigint NOT NULL,
    round_ms         integer NOT NULL,
    stored_at        timestamptz NOT NULL,
    UNIQUE (sale, epoch, instance, checked_ms)
);

CREATE TABLE tidegate.control_log (
    command_id    text COLLATE "C" PRIMARY KEY,
    sale          text COLLATE "C" NOT NULL,
    kind          text NOT NULL,
    key_id        text NOT NULL,
    command       bytea NOT NULL, -- exactly the signed bytes
    signature     bytea NOT NULL,
    reason        text NOT NULL,
    detail        text NOT NULL,
    control_seq   bigint NOT NULL,
    judged_at     timestamptz NOT NULL
);
CREATE INDEX control_log_of_sale ON tidegate.control_log (sale, judged_at);
