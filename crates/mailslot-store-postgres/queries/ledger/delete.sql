-- Frees keys that their message still holds: one that was freed before may belong to another message by now.
-- $1 seqs, $2 keys.
DELETE FROM mailslot.ledger AS l USING unnest($1::bigint[], $2::bytea[]) AS freed(seq, key)
WHERE l.key = freed.key AND l.seq = freed.seq
