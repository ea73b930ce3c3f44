-- Messages between $14 and $15 (both outside) that match the filter, in acceptance order, at most $16. It looks at a
-- stretch of the key and says in each row where that ends, NULL if there is nothing behind it: so a statement has a
-- bound, whatever the filter matches. $17: not those that someone asked to cancel.
WITH stretch AS MATERIALIZED (
    SELECT CASE WHEN count(*) = 10000 THEN max(seq) END AS ends, max(seq) AS last
    FROM (
        SELECT seq FROM mailslot.message WHERE seq > $14::bigint AND seq < $15::bigint ORDER BY seq LIMIT 10000
    ) AS next
)
SELECT stretch.ends, found.seq
FROM stretch
LEFT JOIN LATERAL (
    SELECT r.seq FROM mailslot.record AS r
    WHERE r.seq > $14::bigint AND r.seq <= stretch.last
      AND ($1::uuid[] IS NULL OR r.id = ANY ($1))
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
      AND ($18::bigint IS NULL OR r.generation = $18)
      AND NOT ($17::boolean AND r.status = 'leased' AND r.seq IN (
        SELECT u.seq FROM mailslot.lease AS l CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
        WHERE l.cancels IS NOT NULL AND u.seq = ANY (l.cancels) AND get_bit(l.settled, (u.place - 1)::integer) = 0
      ))
    ORDER BY r.seq LIMIT $16::bigint
) AS found ON true
