-- Messages go that were not handled. $1: seqs. Their deliveries are as if they had never come.
DELETE FROM mailslot.delivery WHERE seq = ANY ($1::bigint[])
