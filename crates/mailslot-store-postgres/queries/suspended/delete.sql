-- $1 seqs. Fewer rows than seqs: another settlement was faster.
DELETE FROM mailslot.suspended WHERE seq = ANY($1::bigint[])
