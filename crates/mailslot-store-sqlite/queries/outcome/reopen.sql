-- The messages ?1 (JSON array of seqs) leave their end: history stays, but it is no longer where they stand.
UPDATE mailslot_outcome SET current = 0 WHERE current = 1 AND seq IN (SELECT value FROM json_each(?1))
