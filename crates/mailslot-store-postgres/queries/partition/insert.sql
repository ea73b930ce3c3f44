-- $1 lower, $2 upper, $3 time.
INSERT INTO mailslot.partition (lower, upper, created_at) VALUES ($1::bigint, $2::bigint, $3::bigint)
