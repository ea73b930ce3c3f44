-- Every message is in exactly one place. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT m.seq AS what FROM mailslot_message AS m
    WHERE EXISTS (SELECT 1 FROM mailslot_ready AS r WHERE r.seq = m.seq)
        + EXISTS (SELECT 1 FROM mailslot_lease_member AS b WHERE b.seq = m.seq)
        + EXISTS (SELECT 1 FROM mailslot_parked AS p WHERE p.seq = m.seq)
        + EXISTS (SELECT 1 FROM mailslot_suspended AS s WHERE s.seq = m.seq)
        + (SELECT COUNT(*) FROM mailslot_outcome AS o WHERE o.seq = m.seq AND o.current = 1) <> 1
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
