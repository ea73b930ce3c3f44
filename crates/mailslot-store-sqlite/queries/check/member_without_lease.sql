-- Every leased message is a member of a lease that exists. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT b.seq AS what FROM mailslot_lease_member AS b
    WHERE NOT EXISTS (SELECT 1 FROM mailslot_lease AS l WHERE l.generation = b.lease)
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
