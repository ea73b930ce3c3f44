-- Deletes the oldest $3 records of an endpoint that are older than $2, and claims that ended before. $1 endpoint, $4 time or
-- NULL for the server's. What somebody else is changing is passed over.
DELETE FROM mailslot.delivery WHERE key = ANY (ARRAY(
    SELECT key FROM mailslot.delivery
    WHERE endpoint = $1::text AND seq IS NULL
      AND recorded_at < COALESCE($4::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) - $2::bigint
    ORDER BY recorded_at LIMIT $3::bigint FOR UPDATE SKIP LOCKED
))
