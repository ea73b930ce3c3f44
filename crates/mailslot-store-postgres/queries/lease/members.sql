-- The open members of the leases $1, which are locked until the end of the transaction; $2: only these seqs, or all if
-- it is empty. The test by IN is looked up in a hash because of the OR.
WITH held AS MATERIALIZED (
    SELECT generation, owner, seqs, generations, attempts, sessions, settled, cancels
    FROM mailslot.lease WHERE generation = ANY($1::bigint[])
    ORDER BY generation FOR UPDATE
)
SELECT
    l.generation, l.owner, u.place - 1, cardinality(l.seqs), COALESCE(u.seq = ANY (l.cancels), false),
    u.seq, m.lane, m.priority, COALESCE(u.generation, 0), COALESCE(u.attempt, 1), u.session, m.key_policy
FROM held AS l
CROSS JOIN LATERAL unnest(l.seqs, l.generations, l.attempts, l.sessions) WITH ORDINALITY
    AS u(seq, generation, attempt, session, place)
LEFT JOIN mailslot.message AS m ON m.seq = u.seq
WHERE get_bit(l.settled, (u.place - 1)::integer) = 0
  AND (cardinality($2::bigint[]) = 0 OR u.seq IN (SELECT unnest($2::bigint[])))
