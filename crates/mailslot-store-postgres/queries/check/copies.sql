-- What a place copied from its message is still the same. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT p.seq AS what
    FROM (
        SELECT seq, lane, priority, key_policy FROM mailslot.ready
        UNION ALL SELECT seq, lane, priority, key_policy FROM mailslot.parked
        UNION ALL SELECT seq, lane, priority, key_policy FROM mailslot.suspended
    ) AS p
    JOIN mailslot.message AS m ON m.seq = p.seq
    WHERE (p.lane, p.priority, p.key_policy) <> (m.lane, m.priority, m.key_policy)
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
