-- How many messages from $1 on and before $2 ended as what, by lane; NULL: as nothing. It looks at a stretch of the key
-- and says in each row where that ends, NULL if there is nothing behind it.
WITH stretch AS MATERIALIZED (
    SELECT CASE WHEN count(*) = 200000 THEN max(seq) END AS ends, max(seq) AS last
    FROM (
        SELECT seq FROM mailslot.message WHERE seq >= $1::bigint AND seq < $2::bigint ORDER BY seq LIMIT 200000
    ) AS next
),
ended AS (
    SELECT DISTINCT ON (o.seq) o.seq, o.kind FROM mailslot.outcome AS o
    WHERE o.seq >= $1 AND o.seq <= (SELECT last FROM stretch)
    ORDER BY o.seq DESC, o.generation DESC, o.attempt DESC, o.kind DESC
)
SELECT (SELECT ends FROM stretch), m.lane, CASE WHEN ended.kind BETWEEN 4 AND 7 THEN ended.kind END, count(*)
FROM mailslot.message AS m LEFT JOIN ended ON ended.seq = m.seq
WHERE m.seq >= $1 AND m.seq <= (SELECT last FROM stretch)
GROUP BY 2, 3
