-- The histories of ?1, a JSON array of seqs, in the order in which things happened: that of the primary key.
SELECT seq, generation, attempt, kind, reason, error, at FROM mailslot_outcome
WHERE seq IN (SELECT value FROM json_each(?1))
ORDER BY seq, generation, attempt, kind
