-- Claims a delivery that nobody else has. ?1 key, ?2 until, ?3 owner, ?4 endpoint, ?5 message id, ?6 now.
INSERT INTO mailslot_delivery (key, recorded_at, owner, endpoint, message_id) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (key) DO UPDATE SET recorded_at = excluded.recorded_at, owner = excluded.owner
WHERE owner = excluded.owner OR (owner IS NOT NULL AND recorded_at <= ?6)
