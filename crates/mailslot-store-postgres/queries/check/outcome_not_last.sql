-- Nothing follows an end, but what an operator does to a dead letter: skip, cancel or requeue it. Answers how many there
-- are, and the first ten.
WITH story AS (
    SELECT seq, kind, lead(kind) OVER (PARTITION BY seq ORDER BY generation, attempt, kind) AS next FROM mailslot.outcome
),
bad AS (
    SELECT DISTINCT seq AS what FROM story WHERE kind IN (4, 5, 7) AND next IS NOT NULL OR kind = 6 AND next NOT IN (5, 7, 8)
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
