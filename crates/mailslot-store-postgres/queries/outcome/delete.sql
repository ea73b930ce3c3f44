-- $1 seqs.
DELETE FROM mailslot.outcome WHERE seq = ANY ($1::bigint[])
