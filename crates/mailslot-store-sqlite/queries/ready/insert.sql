-- ?1: JSON array of [seq, lane, priority, due_at, generation, attempt, session, key_policy].
INSERT INTO mailslot_ready (seq, lane, priority, due_at, generation, attempt, session, key_policy)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
FROM jsonb_each(?1)
