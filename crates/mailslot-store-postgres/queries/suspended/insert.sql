-- Arrays: $1 seq, $2 lane, $3 priority, $4 generation, $5 attempt, $6 session, $7 key policy, $8 handoff.
INSERT INTO mailslot.suspended (seq, lane, priority, generation, attempt, session, key_policy, handoff)
SELECT seq, lane, priority, generation, attempt, session, key_policy, handoff
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
    AS u(seq, lane, priority, generation, attempt, session, key_policy, handoff)
