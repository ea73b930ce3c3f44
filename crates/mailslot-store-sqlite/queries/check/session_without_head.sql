-- The head of every session is pending, leased, suspended or dead-lettered, and knows its session. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT s.id AS what FROM mailslot_session AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM mailslot_record AS r
        WHERE r.seq = s.head AND r.session_id = s.id
          AND r.status IN ('pending', 'leased', 'suspended', 'dead_lettered')
    )
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
