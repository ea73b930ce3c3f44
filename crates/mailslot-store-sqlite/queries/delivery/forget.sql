-- Messages go that were not handled. ?1: JSON array of seqs. Their deliveries are as if they had never come.
DELETE FROM mailslot_delivery WHERE seq IN (SELECT value FROM json_each(?1))
