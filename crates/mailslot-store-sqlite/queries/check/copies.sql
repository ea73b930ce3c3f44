-- What a place copied from its message is still the same. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT p.seq AS what FROM (
        SELECT seq, lane, priority, key_policy FROM mailslot_ready
        UNION ALL SELECT seq, lane, priority, key_policy FROM mailslot_lease_member
        UNION ALL SELECT seq, lane, priority, key_policy FROM mailslot_parked
        UNION ALL SELECT seq, lane, priority, key_policy FROM mailslot_suspended
    ) AS p
    JOIN mailslot_message AS m ON m.seq = p.seq
    WHERE (p.lane, p.priority, p.key_policy) <> (m.lane, m.priority, m.key_policy)
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
