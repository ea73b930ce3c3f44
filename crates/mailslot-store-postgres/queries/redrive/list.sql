-- Newest first. $1: of a state, or NULL for all; $2: of an id, or NULL for all.
SELECT id, filter, rate, state, total, requeued, created_at, updated_at, passed, last
FROM mailslot.redrive
WHERE ($1::text IS NULL OR state = $1) AND ($2::bigint IS NULL OR id = $2)
ORDER BY id DESC
