-- $1 seqs.
DELETE FROM mailslot.message WHERE seq = ANY ($1::bigint[])
