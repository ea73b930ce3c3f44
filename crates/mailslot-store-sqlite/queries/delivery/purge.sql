-- Deletes the oldest ?3 records of an endpoint that are from before ?2, and claims that ended before. ?1 endpoint.
DELETE FROM mailslot_delivery WHERE key IN (
    SELECT key FROM mailslot_delivery
    WHERE endpoint = ?1 AND recorded_at < ?2 AND seq IS NULL
    ORDER BY recorded_at LIMIT ?3
)
