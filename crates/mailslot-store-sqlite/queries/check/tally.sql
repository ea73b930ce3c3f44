-- The counters are what a count would find. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT COALESCE(truth.status, t.status) || ' in lane ' || COALESCE(truth.lane, t.lane) AS what
    FROM (
        SELECT lane, 'pending' AS status, COUNT(*) AS messages FROM mailslot_ready GROUP BY lane
        UNION ALL SELECT lane, 'leased', COUNT(*) FROM mailslot_lease_member GROUP BY lane
        UNION ALL SELECT lane, 'parked', COUNT(*) FROM mailslot_parked GROUP BY lane
        UNION ALL SELECT lane, 'suspended', COUNT(*) FROM mailslot_suspended GROUP BY lane
        UNION ALL
        SELECT
            m.lane,
            CASE o.kind WHEN 4 THEN 'completed' WHEN 5 THEN 'skipped' WHEN 6 THEN 'dead_lettered' ELSE 'cancelled' END
                AS status,
            COUNT(*)
        FROM mailslot_outcome AS o JOIN mailslot_message AS m ON m.seq = o.seq
        WHERE o.current = 1
        GROUP BY m.lane, o.kind
    ) AS truth
    FULL JOIN (SELECT lane, status, messages FROM mailslot_tally WHERE messages <> 0) AS t
        ON t.lane = truth.lane AND t.status = truth.status
    WHERE t.messages IS NOT truth.messages
)
SELECT COUNT(*), (SELECT group_concat(what, ', ') FROM (SELECT what FROM bad LIMIT 10)) FROM bad
