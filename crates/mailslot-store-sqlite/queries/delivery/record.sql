-- Records deliveries. ?1: JSON array of [seq or null, endpoint, message id]; ?2: their keys, 32 bytes each; ?3: now. What is
-- there stays, but for claims and for what points to no message.
INSERT INTO mailslot_delivery (key, recorded_at, seq, endpoint, message_id)
SELECT substr(?2, 1 + 32 * key, 32), ?3, value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(?1) WHERE true
ON CONFLICT (key) DO UPDATE SET recorded_at = excluded.recorded_at, seq = excluded.seq, owner = NULL
WHERE owner IS NOT NULL OR NOT EXISTS (SELECT 1 FROM mailslot_message AS m WHERE m.seq = mailslot_delivery.seq)
    AND mailslot_delivery.seq IS NOT NULL
