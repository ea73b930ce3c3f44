-- ?1: JSON array of seqs.
DELETE FROM mailslot_lease_member WHERE seq IN (SELECT value FROM json_each(?1))
