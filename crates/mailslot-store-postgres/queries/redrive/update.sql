-- $1 redrive, $2 state, $3 how many were requeued, $4 time, $5 the last place that it passed.
UPDATE mailslot.redrive SET state = $2::text, requeued = $3::bigint, updated_at = $4::bigint, passed = $5::bigint
WHERE id = $1::bigint
