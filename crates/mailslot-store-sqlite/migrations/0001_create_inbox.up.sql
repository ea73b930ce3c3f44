-- The tables of the inbox: where a message is, is its state. A message is in exactly one of `mailslot_ready`,
-- `mailslot_lease_member`, `mailslot_parked`, `mailslot_suspended`, or it has an outcome that is `current`.
-- All times are microseconds since 1970-01-01 UTC. Every name begins with `mailslot_`, because an application may
-- keep its own tables in the same file to share transactions.

-- Counters that never go back, so that no address is used twice. An append writes here first: in the caller's own
-- deferred transaction that takes the write lock before anything was read.
CREATE TABLE mailslot_sequence (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO mailslot_sequence (name, value) VALUES ('message', 0), ('redrive', 0);

-- Endpoint and contract, interned: a claim goes by this number. Never deleted.
CREATE TABLE mailslot_lane (
    id INTEGER PRIMARY KEY,
    endpoint TEXT NOT NULL,
    contract TEXT NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (endpoint, contract, version)
) STRICT;

-- The envelope. Inserted and deleted, never updated. The payload is last, so that a look at the rest of a row does
-- not walk through its overflow pages.
CREATE TABLE mailslot_message (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    id_supplied INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    tenant TEXT,
    session TEXT,
    idempotency_key TEXT,
    -- 0 retained, 1 until_finished, 2 until_started.
    key_policy INTEGER NOT NULL,
    traceparent TEXT,
    tracestate TEXT,
    correlation TEXT,
    causation TEXT,
    headers TEXT,
    payload BLOB NOT NULL
) STRICT;

CREATE INDEX mailslot_message_id ON mailslot_message (id);

-- SHA-256 of what is protected -> the message that holds it.
CREATE TABLE mailslot_ledger (
    key BLOB PRIMARY KEY,
    seq INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    -- 0 supplied id, 1 idempotency key.
    kind INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What became of deliveries, by SHA-256 of endpoint and message id. One that was stored points to its message, and what
-- that came to is the answer. One that somebody handles at present is claimed until `recorded_at`. Any other was handled.
CREATE TABLE mailslot_delivery (
    key BLOB PRIMARY KEY,
    recorded_at INTEGER NOT NULL,
    seq INTEGER,
    owner BLOB,
    endpoint TEXT NOT NULL,
    message_id TEXT NOT NULL,
    CHECK (seq IS NULL OR owner IS NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX mailslot_delivery_old ON mailslot_delivery (endpoint, recorded_at) WHERE seq IS NULL;

CREATE UNIQUE INDEX mailslot_delivery_seq ON mailslot_delivery (seq) WHERE seq IS NOT NULL;

-- Pending messages. `session` is set for the head of a session and names its row.
CREATE TABLE mailslot_ready (
    seq INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    -- 0 high, 1 normal, 2 low: a claim asks for exactly these.
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 2),
    due_at INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    session INTEGER,
    key_policy INTEGER NOT NULL
) STRICT;

CREATE INDEX mailslot_ready_due ON mailslot_ready (lane, priority, due_at, seq);

-- One row for each claimed batch. AUTOINCREMENT: a generation is a fence and must never come again.
CREATE TABLE mailslot_lease (
    generation INTEGER PRIMARY KEY AUTOINCREMENT,
    owner BLOB NOT NULL,
    label TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT;

-- Leased messages, with all that a settlement needs to know without reading the message.
CREATE TABLE mailslot_lease_member (
    seq INTEGER PRIMARY KEY,
    lease INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    session INTEGER,
    key_policy INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX mailslot_lease_member_lease ON mailslot_lease_member (lease);

-- Sessions that have a head: pending, leased, suspended or dead-lettered. Its id is the seq of its first head, so it
-- is never used twice. An absent tenant is the empty text, which no tenant can be: UNIQUE would let NULLs repeat.
CREATE TABLE mailslot_session (
    id INTEGER PRIMARY KEY,
    endpoint TEXT NOT NULL,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    head INTEGER NOT NULL,
    UNIQUE (endpoint, tenant, key)
) STRICT;

-- Messages behind the head of their session, in order. They were never leased.
CREATE TABLE mailslot_parked (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    key_policy INTEGER NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX mailslot_parked_seq ON mailslot_parked (seq);

-- Messages whose work goes on elsewhere. `handoff` is JSON.
CREATE TABLE mailslot_suspended (
    seq INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    session INTEGER,
    key_policy INTEGER NOT NULL,
    handoff TEXT NOT NULL
) STRICT;

-- Settlements of handoffs that came before their messages were suspended. `error` is NULL for work that succeeded.
CREATE TABLE mailslot_kept_handoff (
    id BLOB PRIMARY KEY,
    error TEXT,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What became of attempts, and what operators did. The numbers of `kind` are chosen so that the primary key is the
-- order in which things happen to an attempt: 1 retried, 2 expired, 3 suspended, 4 completed, 5 skipped,
-- 6 dead_lettered, 7 cancelled, 8 requeued. `current` marks the outcome that is the message's present end.
CREATE TABLE mailslot_outcome (
    seq INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    reason TEXT,
    error TEXT,
    at INTEGER NOT NULL,
    current INTEGER NOT NULL,
    PRIMARY KEY (seq, generation, attempt, kind)
) STRICT, WITHOUT ROWID;

-- Retention goes by this, one end after the other.
CREATE INDEX mailslot_outcome_ended ON mailslot_outcome (kind, at, seq) WHERE current = 1;

-- Dead letters are listed and redriven in acceptance order. There are few, so the index costs nothing elsewhere.
CREATE INDEX mailslot_outcome_dead ON mailslot_outcome (seq) WHERE current = 1 AND kind = 6;

-- How many messages stand where.
CREATE TABLE mailslot_tally (
    lane INTEGER NOT NULL,
    status TEXT NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (lane, status)
) STRICT, WITHOUT ROWID;

-- `filter` is JSON. A redrive walks from `passed` to `last` in acceptance order.
CREATE TABLE mailslot_redrive (
    id INTEGER PRIMARY KEY,
    filter TEXT NOT NULL,
    rate INTEGER NOT NULL,
    state TEXT NOT NULL,
    total INTEGER NOT NULL,
    requeued INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT;

-- A message and where it stands, for operators: every join goes by a primary key.
CREATE VIEW mailslot_record AS
SELECT
    m.seq, m.id, m.priority, m.accepted_at, m.content_type, m.payload, m.tenant, m.session, m.idempotency_key,
    m.traceparent, m.tracestate, m.correlation, m.causation, m.headers,
    lane.endpoint, lane.contract, lane.version,
    CASE
        WHEN ready.seq IS NOT NULL THEN 'pending'
        WHEN member.seq IS NOT NULL THEN 'leased'
        WHEN parked.seq IS NOT NULL THEN 'parked'
        WHEN suspended.seq IS NOT NULL THEN 'suspended'
        WHEN ended.kind = 4 THEN 'completed'
        WHEN ended.kind = 5 THEN 'skipped'
        WHEN ended.kind = 6 THEN 'dead_lettered'
        WHEN ended.kind = 7 THEN 'cancelled'
    END AS status,
    COALESCE(ready.generation, member.generation, suspended.generation, ended.generation, 0) AS generation,
    COALESCE(ready.attempt, member.attempt, suspended.attempt, ended.attempt, 0) AS attempt,
    COALESCE(ready.due_at, parked.due_at) AS due_at,
    ended.at AS ended_at,
    lease.until AS leased_until,
    lease.label AS leased_by,
    COALESCE(member.cancel_requested, 0) AS cancel_requested,
    (SELECT head.id FROM mailslot_session AS s JOIN mailslot_message AS head ON head.seq = s.head
     WHERE s.id = parked.session) AS waits_behind,
    suspended.handoff,
    (SELECT o.reason FROM mailslot_outcome AS o WHERE o.seq = m.seq
     ORDER BY o.generation DESC, o.attempt DESC, o.kind DESC LIMIT 1) AS reason,
    (SELECT o.error FROM mailslot_outcome AS o WHERE o.seq = m.seq
     ORDER BY o.generation DESC, o.attempt DESC, o.kind DESC LIMIT 1) AS error,
    m.lane, m.id_supplied, m.key_policy,
    COALESCE(
        ready.session, member.session, parked.session, suspended.session,
        (SELECT s.id FROM mailslot_session AS s
         WHERE s.endpoint = lane.endpoint AND s.tenant = COALESCE(m.tenant, '') AND s.key = m.session
           AND s.head = m.seq)
    ) AS session_id
FROM mailslot_message AS m
LEFT JOIN mailslot_lane AS lane ON lane.id = m.lane
LEFT JOIN mailslot_ready AS ready ON ready.seq = m.seq
LEFT JOIN mailslot_lease_member AS member ON member.seq = m.seq
LEFT JOIN mailslot_lease AS lease ON lease.generation = member.lease
LEFT JOIN mailslot_parked AS parked ON parked.seq = m.seq
LEFT JOIN mailslot_suspended AS suspended ON suspended.seq = m.seq
LEFT JOIN mailslot_outcome AS ended ON ended.seq = m.seq AND ended.current = 1;
