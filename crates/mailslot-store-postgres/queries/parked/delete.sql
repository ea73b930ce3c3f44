-- $1 seqs. Fewer rows than seqs: their session was handed on meanwhile.
DELETE FROM mailslot.parked WHERE seq = ANY($1::bigint[])
