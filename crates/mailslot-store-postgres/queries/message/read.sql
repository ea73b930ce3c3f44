-- Whole records of $1, in acceptance order. The leases are looked through once, and only if a message is in one.
WITH wanted AS MATERIALIZED (
    SELECT r.* FROM unnest($1::bigint[]) AS wanted(seq)
    CROSS JOIN LATERAL (SELECT record.* FROM mailslot.record AS record WHERE record.seq = wanted.seq OFFSET 0) AS r
),
held AS MATERIALIZED (
    SELECT
        u.seq, COALESCE(u.generation, 0) AS generation, COALESCE(u.attempt, 1) AS attempt, l.until, l.label,
        COALESCE(u.seq = ANY (l.cancels), false) AS cancel_requested
    FROM mailslot.lease AS l
    CROSS JOIN LATERAL unnest(l.seqs, l.generations, l.attempts) WITH ORDINALITY AS u(seq, generation, attempt, place)
    WHERE EXISTS (SELECT 1 FROM wanted WHERE status = 'leased')
      AND (u.seq IN (SELECT seq FROM wanted WHERE status = 'leased')) IS TRUE
      AND get_bit(l.settled, (u.place - 1)::integer) = 0
)
SELECT
    r.seq, r.id, r.priority, r.accepted_at, r.content_type, r.payload, r.tenant, r.session, r.idempotency_key,
    r.traceparent, r.tracestate, r.correlation, r.causation, r.headers, r.endpoint, r.contract, r.version, r.status,
    COALESCE(held.generation, r.generation), COALESCE(held.attempt, r.attempt), r.due_at, r.ended_at, held.until,
    held.label, COALESCE(held.cancel_requested, false),
    (SELECT head.id FROM mailslot.session AS s JOIN mailslot.message AS head ON head.seq = s.head WHERE s.id = r.waits_in),
    r.handoff, r.reason, r.error
FROM wanted AS r
LEFT JOIN held ON held.seq = r.seq
ORDER BY r.seq
