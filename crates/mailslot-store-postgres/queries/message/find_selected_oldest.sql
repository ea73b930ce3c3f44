-- As find_oldest.sql, driven by what selects few rows ($18): 'ids', 'dead' letters, or the places of those that have not
-- ended ('live'). A stretch is as many of those.
WITH few AS MATERIALIZED (
    (
        SELECT seq FROM mailslot.message
        WHERE $18::text = 'ids' AND id = ANY ($1::uuid[]) AND seq > $14::bigint AND seq < $15::bigint
        ORDER BY seq LIMIT 2000
    ) UNION ALL (
        SELECT seq FROM mailslot.outcome
        WHERE $18 = 'dead' AND kind = 6 AND seq > $14 AND seq < $15
        ORDER BY seq LIMIT 2000
    ) UNION ALL (
        SELECT seq FROM mailslot.ready
        WHERE $18 = 'live' AND 'pending' = ANY ($2::text[]) AND seq > $14 AND seq < $15
        ORDER BY seq LIMIT 2000
    ) UNION ALL (
        SELECT seq FROM mailslot.parked
        WHERE $18 = 'live' AND 'parked' = ANY ($2) AND seq > $14 AND seq < $15
        ORDER BY seq LIMIT 2000
    ) UNION ALL (
        SELECT seq FROM mailslot.suspended
        WHERE $18 = 'live' AND 'suspended' = ANY ($2) AND seq > $14 AND seq < $15
        ORDER BY seq LIMIT 2000
    ) UNION ALL (
        SELECT u.seq FROM mailslot.lease AS l CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
        WHERE $18 = 'live' AND 'leased' = ANY ($2) AND u.seq > $14 AND u.seq < $15
          AND get_bit(l.settled, (u.place - 1)::integer) = 0
        ORDER BY seq LIMIT 2000
    )
    ORDER BY seq LIMIT 2000
),
stretch AS MATERIALIZED (
    SELECT CASE WHEN count(*) = 2000 THEN max(seq) END AS ends FROM few
)
SELECT stretch.ends, found.seq
FROM stretch
LEFT JOIN LATERAL (
    SELECT r.seq
    FROM (SELECT DISTINCT seq FROM few) AS one
    CROSS JOIN LATERAL (SELECT record.* FROM mailslot.record AS record WHERE record.seq = one.seq OFFSET 0) AS r
    WHERE ($1::uuid[] IS NULL OR r.id = ANY ($1))
      AND ($2::text[] IS NULL OR r.status = ANY ($2))
      AND ($3::text IS NULL OR r.endpoint = $3)
      AND ($4::text IS NULL OR (r.contract = $4 AND r.version = $5::bigint))
      AND ($6::text IS NULL OR r.tenant = $6)
      AND ($7::text IS NULL OR r.session = $7)
      AND ($8::text IS NULL OR r.idempotency_key = $8)
      AND ($9::text IS NULL OR r.correlation = $9)
      AND ($10::text IS NULL OR r.causation = $10)
      AND ($11::text IS NULL OR r.reason = $11)
      AND ($12::bigint IS NULL OR r.accepted_at >= $12)
      AND ($13::bigint IS NULL OR r.accepted_at < $13)
      AND ($19::bigint IS NULL OR r.generation = $19)
      AND NOT ($17::boolean AND r.status = 'leased' AND r.seq IN (
        SELECT u.seq FROM mailslot.lease AS l CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
        WHERE l.cancels IS NOT NULL AND u.seq = ANY (l.cancels) AND get_bit(l.settled, (u.place - 1)::integer) = 0
      ))
    ORDER BY one.seq LIMIT $16::bigint
) AS found ON true
