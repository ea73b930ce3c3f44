-- ?1: JSON array of [lane, status, difference]. Counters move with the messages, in the same transaction.
INSERT INTO mailslot_tally (lane, status, messages)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(?1) WHERE true
ON CONFLICT (lane, status) DO UPDATE SET messages = messages + excluded.messages
