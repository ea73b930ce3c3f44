-- The first $5 due messages of each lane and class: what the claim rule asks for. Locked, and passed over if another
-- worker has them. Arrays: $1 lane, $2 class, $3 due times from which on to look; $4 due until; $6 tenant or NULL.
SELECT b.place - 1, r.seq, r.due_at, r.generation, r.attempt, r.session, r.key_policy
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS b(lane, priority, since, place)
CROSS JOIN LATERAL (
    SELECT due.* FROM (
        SELECT r.seq, r.due_at, r.generation, r.attempt, r.session, r.key_policy FROM mailslot.ready AS r
        WHERE r.lane = b.lane AND r.priority = b.priority AND r.due_at >= b.since AND r.due_at <= $4::bigint
          AND ($6::text IS NULL OR $6 = (SELECT m.tenant FROM mailslot.message AS m WHERE m.seq = r.seq))
        ORDER BY r.due_at, r.seq LIMIT 20000 FOR UPDATE SKIP LOCKED
    ) AS due LIMIT $5::bigint
) AS r
