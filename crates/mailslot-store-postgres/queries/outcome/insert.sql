-- $1 time; arrays: $2 seq, $3 generation, $4 attempt, $5 kind, $6 reason, $7 error. The same outcome of the same attempt
-- cannot happen twice; should it, the later one stays, because a failed statement would stop the batch.
INSERT INTO mailslot.outcome (seq, generation, attempt, kind, reason, error, at)
SELECT seq, generation, attempt, kind, reason, error, $1::bigint
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])
    AS u(seq, generation, attempt, kind, reason, error)
ON CONFLICT (seq, generation, attempt, kind) DO UPDATE
SET reason = excluded.reason, error = excluded.error, at = excluded.at
