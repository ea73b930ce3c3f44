-- Arrays: $1 seq, $2 lane, $3 priority, $4 due, $5 generation, $6 attempt, $7 session, $8 key policy.
INSERT INTO mailslot.ready (seq, lane, priority, due_at, generation, attempt, session, key_policy)
SELECT seq, lane, priority, due_at, generation, attempt, session, key_policy
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
    AS u(seq, lane, priority, due_at, generation, attempt, session, key_policy)
