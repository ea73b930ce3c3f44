-- No place, outcome, ledger record or delivery names a message that is gone. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT seq AS what FROM (
        SELECT seq FROM mailslot_ready UNION ALL SELECT seq FROM mailslot_lease_member
        UNION ALL SELECT seq FROM mailslot_parked UNION ALL SELECT seq FROM mailslot_suspended
        UNION ALL SELECT seq FROM mailslot_outcome UNION ALL SELECT seq FROM mailslot_ledger
        UNION ALL SELECT seq FROM mailslot_delivery WHERE seq IS NOT NULL
    )
    WHERE seq NOT IN (SELECT seq FROM mailslot_message)
    GROUP BY seq
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
