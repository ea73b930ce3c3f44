-- No message is in two places: the places of those that have not ended, the end, and every open member of a lease are
-- one each. Answers how many there are, and the first ten.
WITH live AS MATERIALIZED (
    SELECT seq FROM mailslot.ready
    UNION ALL SELECT seq FROM mailslot.parked
    UNION ALL SELECT seq FROM mailslot.suspended
    UNION ALL
    SELECT u.seq FROM mailslot.lease AS l CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
    WHERE get_bit(l.settled, (u.place - 1)::integer) = 0
),
bad AS (
    SELECT seq AS what FROM live GROUP BY seq HAVING count(*) > 1
    UNION
    SELECT live.seq
    FROM live
    CROSS JOIN LATERAL (
        SELECT o.kind FROM mailslot.outcome AS o WHERE o.seq = live.seq
        ORDER BY o.generation DESC, o.attempt DESC, o.kind DESC LIMIT 1
    ) AS last
    WHERE last.kind BETWEEN 4 AND 7
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
