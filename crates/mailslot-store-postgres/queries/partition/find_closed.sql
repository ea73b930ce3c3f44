-- Closed partitions in which every message has ended, none as a dead letter that is kept for longer than until $1, and
-- whether there is a dead letter. $2: this partition, or NULL for all. None if the role may not drop them.
WITH leased AS MATERIALIZED (
    SELECT u.seq FROM mailslot.lease AS l CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
    WHERE get_bit(l.settled, (u.place - 1)::integer) = 0
)
SELECT p.lower, p.upper, EXISTS (
    SELECT 1 FROM mailslot.outcome AS o
    WHERE o.seq >= p.lower AND o.seq < p.upper AND o.kind = 6
      AND NOT EXISTS (
        SELECT 1 FROM mailslot.outcome AS n
        WHERE n.seq = o.seq AND (n.generation, n.attempt, n.kind) > (o.generation, o.attempt, o.kind)
      )
)
FROM mailslot.message_seq AS s
JOIN mailslot.partition AS p ON p.upper <= s.last_value
WHERE ($2::bigint IS NULL OR p.lower = $2)
  AND (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'mailslot.message'::regclass)
  AND NOT EXISTS (SELECT 1 FROM mailslot.ready AS r WHERE r.seq >= p.lower AND r.seq < p.upper)
  AND NOT EXISTS (SELECT 1 FROM mailslot.parked AS r WHERE r.seq >= p.lower AND r.seq < p.upper)
  AND NOT EXISTS (SELECT 1 FROM mailslot.suspended AS r WHERE r.seq >= p.lower AND r.seq < p.upper)
  AND NOT EXISTS (SELECT 1 FROM leased AS r WHERE r.seq >= p.lower AND r.seq < p.upper)
  AND NOT EXISTS (
    SELECT 1 FROM mailslot.outcome AS o
    WHERE o.seq >= p.lower AND o.seq < p.upper AND o.kind = 6 AND o.at >= $1::bigint
      AND NOT EXISTS (
        SELECT 1 FROM mailslot.outcome AS n
        WHERE n.seq = o.seq AND (n.generation, n.attempt, n.kind) > (o.generation, o.attempt, o.kind)
      )
  )
ORDER BY p.lower
