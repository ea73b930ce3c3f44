-- The tables of the inbox: where a message is, is its state. A message is in exactly one of `ready`, a lease, `parked`,
-- `suspended`, or its last outcome is a terminal one. All times are microseconds since 1970-01-01 UTC by the clock of
-- the server. Names are compared and sorted byte by byte (COLLATE "C"), whatever the database's own collation is.

-- Acceptance order. CACHE 1: numbers must follow each other across connections.
CREATE SEQUENCE mailslot.message_seq AS bigint CACHE 1;

-- Endpoint and contract, interned: a claim goes by this number. Never deleted.
CREATE TABLE mailslot.lane (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint text COLLATE "C" NOT NULL,
    contract text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    UNIQUE (endpoint, contract, version)
);

-- The envelope. Inserted and deleted, never updated. Partitioned by acceptance order, so that retention can drop what
-- has ended as a whole; `partition` lists the partitions.
CREATE TABLE mailslot.message (
    seq bigint NOT NULL,
    accepted_at bigint NOT NULL,
    id uuid NOT NULL,
    lane integer NOT NULL,
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 2),
    -- 0 retained, 1 until_finished, 2 until_started.
    key_policy smallint NOT NULL CHECK (key_policy BETWEEN 0 AND 2),
    id_supplied boolean NOT NULL,
    -- NULL: application/json.
    content_type text COLLATE "C",
    tenant text COLLATE "C",
    session text COLLATE "C",
    idempotency_key text COLLATE "C",
    traceparent text COLLATE "C",
    tracestate text COLLATE "C",
    correlation text COLLATE "C",
    causation text COLLATE "C",
    -- A JSON object. Not jsonb, which cannot hold every text that JSON can.
    headers text COLLATE "C",
    payload bytea NOT NULL,
    PRIMARY KEY (seq)
) PARTITION BY RANGE (seq);

CREATE INDEX message_id ON mailslot.message (id);

-- What became of attempts, and what operators did: append-only. The numbers of `kind` are chosen so that the primary
-- key is the order in which things happen to an attempt: 1 retried, 2 expired, 3 suspended, 4 completed, 5 skipped,
-- 6 dead_lettered, 7 cancelled, 8 requeued. A message has ended if its last outcome is one of 4 to 7.
CREATE TABLE mailslot.outcome (
    seq bigint NOT NULL,
    at bigint NOT NULL,
    generation integer NOT NULL,
    attempt integer NOT NULL,
    kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 8),
    reason text COLLATE "C",
    error text COLLATE "C",
    PRIMARY KEY (seq, generation, attempt, kind)
) PARTITION BY RANGE (seq);

-- Outcomes are written in the order of their times, so a few bytes for each stretch of the table tell where to look.
CREATE INDEX outcome_at ON mailslot.outcome USING brin (at) WITH (pages_per_range = 32, autosummarize = on);

-- Dead letters are listed and redriven in acceptance order. There are few, so the index costs nothing elsewhere.
CREATE INDEX outcome_dead ON mailslot.outcome (seq) WHERE kind = 6;

-- The partitions of `message` and `outcome`, each from `lower` on and below `upper`.
CREATE TABLE mailslot.partition (
    lower bigint PRIMARY KEY,
    upper bigint NOT NULL UNIQUE CHECK (upper > lower),
    created_at bigint NOT NULL
);

-- SHA-256 of what is protected -> the message that holds it. One flat table: hash partitions halve its speed.
CREATE TABLE mailslot.ledger (
    key bytea PRIMARY KEY,
    seq bigint NOT NULL,
    recorded_at bigint NOT NULL,
    fingerprint bytea NOT NULL,
    -- 0 supplied id, 1 idempotency key.
    kind smallint NOT NULL CHECK (kind IN (0, 1))
);

-- For the records of a partition that is dropped.
CREATE INDEX ledger_seq ON mailslot.ledger USING brin (seq) WITH (pages_per_range = 32, autosummarize = on);

-- Pending messages, narrow. A claim walks the primary key of its lanes from the last due time that it saw.
-- `session` is set for the head of a session and names its row.
-- What became of deliveries, by SHA-256 of endpoint and message id. One that was stored points to its message, and what
-- that came to is the answer. One that somebody handles at present is claimed until `recorded_at`. Any other was handled.
CREATE TABLE mailslot.delivery (
    key bytea PRIMARY KEY,
    recorded_at bigint NOT NULL,
    seq bigint,
    owner uuid,
    endpoint text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    CHECK (seq IS NULL OR owner IS NULL)
);

CREATE INDEX delivery_old ON mailslot.delivery (endpoint, recorded_at) WHERE seq IS NULL;

CREATE UNIQUE INDEX delivery_seq ON mailslot.delivery (seq) WHERE seq IS NOT NULL;

CREATE TABLE mailslot.ready (
    due_at bigint NOT NULL,
    seq bigint NOT NULL UNIQUE,
    session bigint,
    lane integer NOT NULL,
    generation integer NOT NULL,
    attempt integer NOT NULL,
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 2),
    key_policy smallint NOT NULL CHECK (key_policy BETWEEN 0 AND 2),
    PRIMARY KEY (lane, priority, due_at, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- One row for each claimed batch, whatever its size. `generations`, `attempts` and `sessions` belong to `seqs`, place
-- by place; NULL stands for all 0, all 1 and no session, which is the usual. `open` counts the members that are not
-- settled; `settled` has a bit for each member. The arrays stay in the row: moving them out of it would cost more than
-- it saves.
CREATE TABLE mailslot.lease (
    generation bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    until bigint NOT NULL,
    owner uuid NOT NULL,
    open integer NOT NULL CHECK (open > 0),
    label text COLLATE "C" NOT NULL,
    seqs bigint[] NOT NULL,
    generations integer[],
    attempts integer[],
    sessions bigint[],
    settled bit varying NOT NULL CHECK (length(settled) = cardinality(seqs)),
    -- Members that someone asked to cancel.
    cancels bigint[],
    CHECK (open = cardinality(seqs) - bit_count(settled))
) WITH (toast_tuple_target = 8160, fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Sessions that have a head: pending, leased, suspended or dead-lettered. A session's id is the seq of its first head,
-- so it is never used twice. An absent tenant is the empty text, which no tenant can be: UNIQUE would let NULLs repeat.
CREATE TABLE mailslot.session (
    id bigint PRIMARY KEY,
    head bigint NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    UNIQUE (endpoint, tenant, key)
);

-- Messages behind the head of their session, in order. They were never leased.
CREATE TABLE mailslot.parked (
    session bigint NOT NULL,
    seq bigint NOT NULL UNIQUE,
    due_at bigint NOT NULL,
    lane integer NOT NULL,
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 2),
    key_policy smallint NOT NULL CHECK (key_policy BETWEEN 0 AND 2),
    PRIMARY KEY (session, seq)
);

-- Messages whose work goes on elsewhere. `handoff` is JSON.
CREATE TABLE mailslot.suspended (
    seq bigint PRIMARY KEY,
    session bigint,
    lane integer NOT NULL,
    generation integer NOT NULL,
    attempt integer NOT NULL,
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 2),
    key_policy smallint NOT NULL CHECK (key_policy BETWEEN 0 AND 2),
    handoff text COLLATE "C" NOT NULL
);

-- Settlements of handoffs that came before their messages were suspended. `error` is NULL for work that succeeded.
CREATE TABLE mailslot.kept_handoff (
    id uuid PRIMARY KEY,
    until bigint NOT NULL,
    error text COLLATE "C"
);

-- How many messages stand where: the sum of `messages` for each lane and status. Each transaction adds rows of its own
-- instead of changing one that all others would wait for; the store adds them up from time to time.
CREATE TABLE mailslot.tally (
    lane integer NOT NULL,
    status text COLLATE "C" NOT NULL,
    messages bigint NOT NULL
);

-- `filter` is JSON. A redrive walks from `passed` to `last` in acceptance order.
CREATE TABLE mailslot.redrive (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    filter text COLLATE "C" NOT NULL,
    rate integer NOT NULL CHECK (rate > 0),
    state text COLLATE "C" NOT NULL,
    total bigint NOT NULL,
    requeued bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    passed bigint NOT NULL,
    last bigint NOT NULL
);

-- A message and where it stands, for operators: every join goes by a unique index. What is nowhere else and has not
-- ended is in a lease; `check/one_place.sql` finds the message that is not. Who holds it is read beside this view.
CREATE VIEW mailslot.record AS
SELECT
    m.seq, m.id, m.priority, m.accepted_at, m.content_type, m.payload, m.tenant, m.session, m.idempotency_key,
    m.traceparent, m.tracestate, m.correlation, m.causation, m.headers, m.lane, m.id_supplied, m.key_policy,
    lane.endpoint, lane.contract, lane.version,
    CASE
        WHEN ready.seq IS NOT NULL THEN 'pending'
        WHEN parked.seq IS NOT NULL THEN 'parked'
        WHEN suspended.seq IS NOT NULL THEN 'suspended'
        WHEN last.kind = 4 THEN 'completed'
        WHEN last.kind = 5 THEN 'skipped'
        WHEN last.kind = 6 THEN 'dead_lettered'
        WHEN last.kind = 7 THEN 'cancelled'
        ELSE 'leased'
    END COLLATE "C" AS status,
    COALESCE(ready.generation, suspended.generation, last.generation, 0) AS generation,
    COALESCE(ready.attempt, suspended.attempt, last.attempt, 0) AS attempt,
    COALESCE(ready.due_at, parked.due_at) AS due_at,
    CASE WHEN last.kind BETWEEN 4 AND 7 AND ready.seq IS NULL AND parked.seq IS NULL AND suspended.seq IS NULL
        THEN last.at END AS ended_at,
    parked.session AS waits_in,
    COALESCE(ready.session, parked.session, suspended.session) AS placed_session,
    suspended.handoff,
    last.reason, last.error
FROM mailslot.message AS m
LEFT JOIN mailslot.lane AS lane ON lane.id = m.lane
LEFT JOIN mailslot.ready AS ready ON ready.seq = m.seq
LEFT JOIN mailslot.parked AS parked ON parked.seq = m.seq
LEFT JOIN mailslot.suspended AS suspended ON suspended.seq = m.seq
LEFT JOIN LATERAL (
    SELECT o.kind, o.generation, o.attempt, o.at, o.reason, o.error FROM mailslot.outcome AS o
    WHERE o.seq = m.seq
    ORDER BY o.generation DESC, o.attempt DESC, o.kind DESC LIMIT 1
) AS last ON true;
