-- No place, outcome, ledger record or delivery names a message that is gone. Answers how many there are, and the first ten.
WITH live AS (
    SELECT seq FROM mailslot.ready
    UNION ALL SELECT seq FROM mailslot.parked
    UNION ALL SELECT seq FROM mailslot.suspended
    UNION ALL
    SELECT u.seq FROM mailslot.lease AS l CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
    WHERE get_bit(l.settled, (u.place - 1)::integer) = 0
),
bad AS (
    SELECT p.seq AS what FROM live AS p WHERE NOT EXISTS (SELECT 1 FROM mailslot.message AS m WHERE m.seq = p.seq)
    UNION
    SELECT p.seq FROM mailslot.outcome AS p WHERE NOT EXISTS (SELECT 1 FROM mailslot.message AS m WHERE m.seq = p.seq)
    UNION
    SELECT p.seq FROM mailslot.ledger AS p WHERE NOT EXISTS (SELECT 1 FROM mailslot.message AS m WHERE m.seq = p.seq)
    UNION
    SELECT p.seq FROM mailslot.delivery AS p
    WHERE p.seq IS NOT NULL AND NOT EXISTS (SELECT 1 FROM mailslot.message AS m WHERE m.seq = p.seq)
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
