-- Which of the messages are suspected of killing their workers: both of their last two attempts expired (kind 2).
-- Arrays: $1 seq, $2 generation, $3 attempt.
SELECT tried.seq FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS tried(seq, generation, attempt)
WHERE EXISTS (
    SELECT 1 FROM mailslot.outcome AS o
    WHERE o.seq = tried.seq AND o.generation = tried.generation AND o.attempt = tried.attempt AND o.kind = 2
) AND EXISTS (
    SELECT 1 FROM mailslot.outcome AS o
    WHERE o.seq = tried.seq AND o.generation = tried.generation AND o.attempt = tried.attempt - 1 AND o.kind = 2
)
