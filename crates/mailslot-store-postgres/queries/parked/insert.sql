-- Arrays: $1 session, $2 seq, $3 lane, $4 priority, $5 due, $6 key policy.
INSERT INTO mailslot.parked (session, seq, lane, priority, due_at, key_policy)
SELECT session, seq, lane, priority, due_at, key_policy
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    AS u(session, seq, lane, priority, due_at, key_policy)
