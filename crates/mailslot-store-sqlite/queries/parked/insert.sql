-- ?1: JSON array of [session, seq, lane, priority, due_at, key_policy].
INSERT INTO mailslot_parked (session, seq, lane, priority, due_at, key_policy)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM jsonb_each(?1)
