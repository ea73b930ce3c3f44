-- Messages that ended from the time $3 on and before $4, as one of the kinds $1, the earliest first, at most $5. $2: of
-- this endpoint, or NULL for all. It looks at so many outcomes at most, wherever in that time the BRIN index meets them
-- first, and says in each row whether these were all: so a statement has a bound, however much is kept. Arrays: $6 lower
-- and $7 upper bounds of partitions that wait to be dropped as a whole; their dead letters (6) do not wait.
WITH looked AS MATERIALIZED (
    SELECT o.seq, o.generation, o.attempt, o.kind, o.at FROM mailslot.outcome AS o
    WHERE o.at >= $3::bigint AND o.at < $4::bigint
    LIMIT 5000
),
due AS MATERIALIZED (
    SELECT looked.seq
    FROM looked
    WHERE looked.kind = ANY ($1::bigint[])
      AND (looked.kind = 6 OR NOT EXISTS (
        SELECT 1 FROM unnest($6::bigint[], $7::bigint[]) AS waiting(lower, upper)
        WHERE looked.seq >= waiting.lower AND looked.seq < waiting.upper
      ))
      AND NOT EXISTS (
        SELECT 1 FROM mailslot.outcome AS n
        WHERE n.seq = looked.seq
          AND (n.generation, n.attempt, n.kind) > (looked.generation, looked.attempt, looked.kind)
      )
      AND ($2::text IS NULL OR $2 = (
        SELECT lane.endpoint FROM mailslot.message AS m JOIN mailslot.lane AS lane ON lane.id = m.lane
        WHERE m.seq = looked.seq
      ))
    ORDER BY looked.at, looked.seq LIMIT $5::bigint
)
SELECT (SELECT count(*) FROM looked) < 5000, due.seq
FROM (VALUES (1)) AS one
LEFT JOIN due ON true
