-- A message is parked only behind an earlier head. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT p.seq AS what FROM mailslot.parked AS p
    WHERE NOT EXISTS (SELECT 1 FROM mailslot.session AS s WHERE s.id = p.session AND s.head < p.seq)
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
