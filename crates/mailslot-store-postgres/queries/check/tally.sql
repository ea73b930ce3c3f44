-- The counters are what a count would find. Answers how many there are, and the first ten.
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
),
counted AS (
    SELECT lane, status, sum(messages)::bigint AS messages FROM mailslot.tally GROUP BY lane, status
    HAVING sum(messages) <> 0
),
bad AS (
    SELECT COALESCE(truth.status, counted.status) || ' in lane ' || COALESCE(truth.lane, counted.lane) AS what
    FROM truth FULL JOIN counted ON counted.lane = truth.lane AND counted.status = truth.status
    WHERE counted.messages IS DISTINCT FROM truth.messages
)
SELECT count(*), (SELECT string_agg(what, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
