-- Counts anew; the counters were deleted before.
INSERT INTO mailslot_tally (lane, status, messages)
SELECT lane, status, messages FROM (
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
)
