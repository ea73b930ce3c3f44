-- ?1: JSON array of [seq, generation, attempt, kind, reason, error, current]; ?2: now. The same outcome of the same
-- attempt cannot happen twice; should it, the later one stays, because a failed statement would stop the batch.
INSERT INTO mailslot_outcome (seq, generation, attempt, kind, reason, error, at, current)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, ?2, value ->> 6
FROM jsonb_each(?1) WHERE true
ON CONFLICT (seq, generation, attempt, kind) DO UPDATE
SET reason = excluded.reason, error = excluded.error, at = excluded.at, current = excluded.current
