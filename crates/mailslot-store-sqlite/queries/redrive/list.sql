-- Newest first. ?1: a state, or NULL for all; ?2: an id, or NULL for all.
SELECT id, filter, rate, state, total, requeued, created_at, updated_at, passed, last
FROM mailslot_redrive
WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR id = ?2)
ORDER BY id DESC
