-- ?1: JSON array of seqs.
DELETE FROM mailslot_ready WHERE seq IN (SELECT value FROM json_each(?1))
