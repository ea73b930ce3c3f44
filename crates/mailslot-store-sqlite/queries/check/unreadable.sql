-- Every value is what this version can read. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT m.seq AS what FROM mailslot_message AS m
    WHERE length(m.id) <> 16 OR m.priority NOT BETWEEN 0 AND 2 OR m.key_policy NOT BETWEEN 0 AND 2
       OR (m.headers IS NOT NULL AND NOT json_valid(m.headers))
       OR trim(m.content_type) = '' OR trim(m.tenant) = '' OR trim(m.session) = '' OR trim(m.idempotency_key) = ''
       OR NOT EXISTS (SELECT 1 FROM mailslot_lane AS lane WHERE lane.id = m.lane)
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
