-- The plain success, which is most of what there is. ?1: JSON array of the seqs, which are still leased; ?2: now.
-- As insert.sql, but what it records comes from the leased row: one look-up by key instead of seven in JSON.
INSERT INTO mailslot_outcome (seq, generation, attempt, kind, reason, error, at, current)
SELECT b.seq, b.generation, b.attempt, 4, NULL, NULL, ?2, 1
FROM json_each(?1) AS completed
CROSS JOIN mailslot_lease_member AS b ON b.seq = completed.value
WHERE true
ON CONFLICT (seq, generation, attempt, kind) DO UPDATE
SET reason = excluded.reason, error = excluded.error, at = excluded.at, current = excluded.current
