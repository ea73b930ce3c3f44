-- $1 seqs. Fewer rows than seqs: a worker was faster.
DELETE FROM mailslot.ready WHERE seq = ANY($1::bigint[])
