-- A message of a session is pending, leased or suspended only as its head. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT p.seq AS what FROM (
        SELECT seq, session FROM mailslot_ready UNION ALL SELECT seq, session FROM mailslot_lease_member
        UNION ALL SELECT seq, session FROM mailslot_suspended
    ) AS p
    JOIN mailslot_message AS m ON m.seq = p.seq
    WHERE (m.session IS NOT NULL OR p.session IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM mailslot_session AS s WHERE s.id = p.session AND s.head = p.seq)
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
