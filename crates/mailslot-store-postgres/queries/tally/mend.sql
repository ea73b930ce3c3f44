-- Adds what is missing from the counters to what a count finds. Messages and counters change in the same transactions,
-- so the difference is the same in every snapshot, and nobody has to wait while it is counted.
WITH truth AS (
    SELECT lane, 'pending' AS status, count(*) AS messages FROM mailslot.ready GROUP BY lane
    UNION ALL SELECT lane, 'parked', count(*) FROM mailslot.parked GROUP BY lane
    UNION ALL SELECT lane, 'suspended', count(*) FROM mailslot.suspended GROUP BY lane
    UNION ALL
    SELECT m.lane, 'leased', count(*)
    FROM mailslot.lease AS l
    CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
    JOIN mailslot.message AS m ON m.seq = u.seq
    WHERE get_bit(l.settled, (u.place - 1)::integer) = 0
    GROUP BY m.lane
    UNION ALL
    SELECT
        m.lane,
        CASE last.kind WHEN 4 THEN 'completed' WHEN 5 THEN 'skipped' WHEN 6 THEN 'dead_lettered' ELSE 'cancelled' END,
        count(*)
    FROM (
        SELECT DISTINCT ON (seq) seq, kind FROM mailslot.outcome
        ORDER BY seq DESC, generation DESC, attempt DESC, kind DESC
    ) AS last
    JOIN mailslot.message AS m ON m.seq = last.seq
    WHERE last.kind BETWEEN 4 AND 7
    GROUP BY m.lane, last.kind
)
INSERT INTO mailslot.tally (lane, status, messages)
SELECT lane, status, sum(messages)::bigint
FROM (SELECT lane, status, messages FROM truth UNION ALL SELECT lane, status, -messages FROM mailslot.tally) AS difference
GROUP BY lane, status HAVING sum(messages) <> 0
