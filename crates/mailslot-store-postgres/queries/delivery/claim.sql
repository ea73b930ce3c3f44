-- Claims a delivery that nobody else has, and gives the end of the claim. $1 key, as an array, $2 owner, $3 for how long, $4 endpoint,
-- $5 message id, $6 time or NULL for the server's.
WITH clock AS MATERIALIZED (
    SELECT COALESCE($6::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) AS now
)
INSERT INTO mailslot.delivery AS d (key, recorded_at, owner, endpoint, message_id)
SELECT ($1::bytea[])[1], now + $3::bigint, $2::uuid, $4::text, $5::text FROM clock
ON CONFLICT (key) DO UPDATE SET recorded_at = EXCLUDED.recorded_at, owner = EXCLUDED.owner
WHERE d.owner = EXCLUDED.owner OR (d.owner IS NOT NULL AND d.recorded_at <= (SELECT now FROM clock))
RETURNING recorded_at
