-- Leases that are over at $1, longest first, at most $2; locked, and passed over if someone else has them locked.
SELECT generation FROM mailslot.lease WHERE until <= $1::bigint
ORDER BY until, generation LIMIT $2::bigint FOR UPDATE SKIP LOCKED
