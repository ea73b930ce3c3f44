-- A message is parked only behind an earlier head. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT p.seq AS what FROM mailslot_parked AS p
    WHERE NOT EXISTS (SELECT 1 FROM mailslot_session AS s WHERE s.id = p.session AND s.head < p.seq)
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
