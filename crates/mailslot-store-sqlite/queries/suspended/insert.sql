-- ?1: JSON array of [seq, lane, priority, generation, attempt, session, key_policy, handoff].
INSERT INTO mailslot_suspended (seq, lane, priority, generation, attempt, session, key_policy, handoff)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
FROM jsonb_each(?1)
