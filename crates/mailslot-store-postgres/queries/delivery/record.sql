-- Records deliveries and gives their keys back. $1 time or NULL for the server's; arrays: $2 keys, $3 seqs or NULL,
-- $4 endpoint, $5 message id. What is there stays, but for claims and for what points to no message.
-- In the order of the keys, so that two batches cannot wait for each other.
INSERT INTO mailslot.delivery AS d (key, recorded_at, seq, endpoint, message_id)
SELECT
    u.key, COALESCE($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint),
    u.seq, u.endpoint, u.message_id
FROM unnest($2::bytea[], $3::bigint[], $4::text[], $5::text[]) AS u(key, seq, endpoint, message_id)
ORDER BY u.key
ON CONFLICT (key) DO UPDATE SET recorded_at = EXCLUDED.recorded_at, seq = EXCLUDED.seq, owner = NULL
WHERE d.owner IS NOT NULL
   OR (d.seq IS NOT NULL AND NOT EXISTS (SELECT 1 FROM mailslot.message AS m WHERE m.seq = d.seq))
RETURNING key
