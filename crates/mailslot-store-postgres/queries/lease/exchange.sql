-- The turn of a worker in one statement: settles plain successes under their leases, and then leases what is due.
-- It does only what is usual. A lease that does not hold a settlement is not among `held`; and if a claim must look at
-- any message more closely (`odd`: tried twice before, attempts used up, a key that is freed now), it takes nothing.
-- Both are answered, and the caller goes the long way.
--
-- $1 time or NULL for the server's. Settling, an element for each lease: $2 generation, $3 owner, $4 how many of it,
-- $5 which of its members, as bits; for each message: $6 seq, $7 generation, $8 attempt, $9 lease; for each lease and
-- lane: $10 lease, $11 lane, $12 how many.
-- Leasing: $13 how many at most (0: nothing), for each lane and class: $14 lane, $15 class, $16 attempts at most, $17 due
-- times from which on to look; $18 due until at the latest, or NULL; $19 owner, $20 label, $21 for how long.
--
-- `locked` waits for another turn of the same worker and sees what that one left of the lease.
-- `share` finds without locks how many of each lane and class are among the first; `picked` locks that many. The inner
-- literal LIMIT is for the planner, which then walks the index; the outer one stops the walk.
WITH clock AS MATERIALIZED (
    SELECT COALESCE($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) AS now
),
given AS MATERIALIZED (
    SELECT generation, owner, n, mask::bit varying AS mask
    FROM unnest($2::bigint[], $3::uuid[], $4::integer[], $5::text[]) AS u(generation, owner, n, mask)
),
locked AS MATERIALIZED (
    SELECT l.generation, l.open, g.n, g.mask
    FROM given AS g JOIN mailslot.lease AS l ON l.generation = g.generation AND l.owner = g.owner
    WHERE bit_count(l.settled & g.mask) = 0
    FOR UPDATE OF l
),
gone AS (
    DELETE FROM mailslot.lease AS l USING locked AS k WHERE l.generation = k.generation AND k.open = k.n
    RETURNING l.generation
),
kept AS (
    UPDATE mailslot.lease AS l SET open = l.open - k.n, settled = l.settled | k.mask FROM locked AS k
    WHERE l.generation = k.generation AND k.open > k.n
    RETURNING l.generation
),
held AS MATERIALIZED (SELECT generation FROM gone UNION ALL SELECT generation FROM kept),
ended AS (
    INSERT INTO mailslot.outcome (seq, generation, attempt, kind, at)
    SELECT s.seq, s.generation, s.attempt, 4, (SELECT now FROM clock)
    FROM unnest($6::bigint[], $7::integer[], $8::integer[], $9::bigint[]) AS s(seq, generation, attempt, lease)
    WHERE s.lease = ANY (ARRAY(SELECT generation FROM held))
),
branch AS MATERIALIZED (
    SELECT lane, priority, attempts_max, since
    FROM unnest($14::integer[], $15::smallint[], $16::integer[], $17::bigint[]) AS u(lane, priority, attempts_max, since)
),
horizon AS MATERIALIZED (SELECT LEAST(now, $18::bigint) AS due_until FROM clock),
share AS MATERIALIZED (
    SELECT lane, priority, attempts_max, since, count(*) AS n
    FROM (
        SELECT b.lane, b.priority, b.attempts_max, b.since
        FROM branch AS b CROSS JOIN LATERAL (
            SELECT due_at, seq FROM (
                SELECT r.due_at, r.seq FROM mailslot.ready AS r
                WHERE r.lane = b.lane AND r.priority = b.priority AND r.due_at >= b.since
                  AND r.due_at <= (SELECT due_until FROM horizon)
                ORDER BY r.due_at, r.seq LIMIT 1000
            ) AS due LIMIT $13::bigint
        ) AS due
        ORDER BY due.due_at + b.priority * 30000000, due.seq LIMIT $13::bigint
    ) AS first
    GROUP BY lane, priority, attempts_max, since
),
picked AS MATERIALIZED (
    SELECT p.place, p.attempt >= LEAST(2, s.attempts_max) OR p.key_policy = 2 AS odd
    FROM share AS s CROSS JOIN LATERAL (
        SELECT place, attempt, key_policy FROM (
            SELECT r.ctid AS place, r.attempt, r.key_policy FROM mailslot.ready AS r
            WHERE r.lane = s.lane AND r.priority = s.priority AND r.due_at >= s.since
              AND r.due_at <= (SELECT due_until FROM horizon)
            ORDER BY r.due_at, r.seq LIMIT 1000 FOR UPDATE SKIP LOCKED
        ) AS due LIMIT s.n
    ) AS p
),
taken AS (
    DELETE FROM mailslot.ready
    WHERE ctid = ANY (ARRAY(SELECT place FROM picked WHERE NOT (SELECT bool_or(odd) FROM picked)))
    RETURNING seq, lane, priority, due_at, generation, attempt + 1 AS attempt, session, key_policy
),
leased AS (
    INSERT INTO mailslot.lease (owner, label, until, open, seqs, generations, attempts, sessions, settled)
    SELECT
        $19::uuid, $20::text, (SELECT now FROM clock) + $21::bigint, count(*), array_agg(seq),
        CASE WHEN max(generation) > 0 THEN array_agg(generation) END,
        CASE WHEN max(attempt) > 1 THEN array_agg(attempt) END,
        CASE WHEN count(session) > 0 THEN array_agg(session) END,
        repeat('0', count(*)::integer)::bit varying
    FROM (SELECT * FROM taken ORDER BY due_at + priority * 30000000, seq) AS ordered
    HAVING count(*) > 0
    RETURNING generation
),
counted AS (
    INSERT INTO mailslot.tally (lane, status, messages)
    SELECT lane, status, sign * n
    FROM (SELECT lane, count(*) AS n FROM taken GROUP BY lane) AS t
    CROSS JOIN (VALUES ('pending', -1), ('leased', 1)) AS v(status, sign)
    UNION ALL
    SELECT lane, status, sign * n
    FROM unnest($10::bigint[], $11::integer[], $12::bigint[]) AS t(lease, lane, n)
    CROSS JOIN (VALUES ('leased', -1), ('completed', 1)) AS v(status, sign)
    WHERE t.lease = ANY (ARRAY(SELECT generation FROM held))
)
SELECT
    m.seq, m.id, m.priority, m.accepted_at, m.content_type, m.payload, m.tenant, m.session, m.idempotency_key,
    m.traceparent, m.tracestate, m.correlation, m.causation, m.headers,
    t.seq, t.lane, t.priority, t.due_at, t.generation, t.attempt, t.session, t.key_policy,
    (SELECT generation FROM leased), clock.now,
    (SELECT string_agg(generation::text, ',') FROM held),
    COALESCE((SELECT bool_or(odd) FROM picked), false),
    CASE WHEN (SELECT count(*) FROM taken) < $13::bigint THEN (
        SELECT min(next.due_at) FROM branch AS b CROSS JOIN LATERAL (
            SELECT r.due_at FROM mailslot.ready AS r
            WHERE r.lane = b.lane AND r.priority = b.priority AND r.due_at > (SELECT now FROM clock)
            ORDER BY r.due_at LIMIT 1
        ) AS next
    ) END
FROM clock
LEFT JOIN taken AS t ON true
LEFT JOIN mailslot.message AS m ON m.seq = t.seq
