-- An attempt that was retried or ran out (1, 2) is over: its worker neither suspended nor completed nor skipped it
-- afterwards (3, 4, 5), and it did not run out too. What dead-letters or cancels the message later is no end of the
-- attempt. Answers how many there are, and the first ten.
WITH story AS (
    SELECT seq, kind, lead(kind) OVER (PARTITION BY seq, generation, attempt ORDER BY kind) AS next FROM mailslot.outcome
),
bad AS (
    SELECT DISTINCT seq AS what FROM story WHERE kind IN (1, 2) AND next BETWEEN 2 AND 5
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
