-- The accept of many callers at once, in one statement: messages without a session, each on its own, with at most one
-- key each. What is new gets its number, its envelope, its record in the ledger and its place; a message whose key is
-- taken is left out, and its place in the arrays comes back.
-- $1 time or NULL for the server's; arrays, one element for each message: $2 id, $3 id supplied, $4 lane, $5 priority,
-- $6 key policy, $7 due not before, $8 delay, $9 content type, $10 tenant, $11 idempotency key, $12 traceparent,
-- $13 tracestate, $14 correlation, $15 causation, $16 headers, $17 payload, $18 ledger key or NULL, $19 fingerprint,
-- $20 kind of the ledger key; $21 the last time that can be written.
-- Keys are inserted in their own order, so that two batches with the same keys cannot wait for each other. The tests
-- by `seq IN` are looked up in a hash because of the OR: a join would be planned by statistics that are always wrong.
WITH clock AS MATERIALIZED (
    SELECT COALESCE($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) AS now
),
src AS MATERIALIZED (
    SELECT nextval('mailslot.message_seq') AS seq, u.*
    FROM unnest(
        $2::uuid[], $3::boolean[], $4::integer[], $5::smallint[], $6::smallint[], $7::bigint[], $8::bigint[],
        $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[],
        $17::bytea[], $18::bytea[], $19::bytea[], $20::smallint[]
    ) WITH ORDINALITY AS u(
        id, id_supplied, lane, priority, key_policy, not_before, delay, content_type, tenant, idempotency_key,
        traceparent, tracestate, correlation, causation, headers, payload, key, fingerprint, kind, place
    )
),
recorded AS (
    INSERT INTO mailslot.ledger (key, seq, recorded_at, fingerprint, kind)
    SELECT key, seq, (SELECT now FROM clock), fingerprint, kind FROM src WHERE key IS NOT NULL ORDER BY key
    ON CONFLICT (key) DO NOTHING
    RETURNING seq
),
stored AS (
    INSERT INTO mailslot.message (
        seq, accepted_at, id, lane, priority, key_policy, id_supplied, content_type, tenant, idempotency_key,
        traceparent, tracestate, correlation, causation, headers, payload
    )
    SELECT
        seq, (SELECT now FROM clock), id, lane, priority, key_policy, id_supplied, content_type, tenant,
        idempotency_key, traceparent, tracestate, correlation, causation, headers, payload
    FROM src WHERE key IS NULL OR seq IN (SELECT seq FROM recorded)
),
fresh AS MATERIALIZED (
    SELECT
        seq, lane, priority, key_policy,
        LEAST(GREATEST((SELECT now FROM clock), not_before) + delay, $21::bigint) AS due_at
    FROM src WHERE key IS NULL OR seq IN (SELECT seq FROM recorded)
),
placed AS (
    INSERT INTO mailslot.ready (due_at, seq, lane, generation, attempt, priority, key_policy)
    SELECT due_at, seq, lane, 0, 0, priority, key_policy FROM fresh
),
counted AS (
    INSERT INTO mailslot.tally (lane, status, messages) SELECT lane, 'pending', count(*) FROM fresh GROUP BY lane
)
SELECT
    clock.now,
    ARRAY(SELECT place FROM src WHERE key IS NOT NULL AND NOT seq IN (SELECT seq FROM recorded) ORDER BY place)
FROM clock
