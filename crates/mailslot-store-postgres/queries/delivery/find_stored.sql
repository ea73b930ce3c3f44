-- At most $3 deliveries whose messages are from $1 on and before $2.
SELECT seq FROM mailslot.delivery WHERE seq >= $1::bigint AND seq < $2::bigint ORDER BY seq LIMIT $3::bigint
