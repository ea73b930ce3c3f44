-- An outcome marked as the present end is a terminal one, and the last of its message. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT o.seq AS what FROM mailslot_outcome AS o
    WHERE o.current = 1 AND (
        o.kind NOT BETWEEN 4 AND 7
        OR EXISTS (
            SELECT 1 FROM mailslot_outcome AS n
            WHERE n.seq = o.seq AND (n.generation, n.attempt, n.kind) > (o.generation, o.attempt, o.kind)
        )
    )
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
