-- The histories of the messages $1 in the order in which things happened: that of the primary key.
SELECT seq, generation, attempt, kind, reason, error, at FROM mailslot.outcome
WHERE seq = ANY ($1::bigint[])
ORDER BY seq, generation, attempt, kind
