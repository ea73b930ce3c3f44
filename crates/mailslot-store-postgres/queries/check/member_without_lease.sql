-- Every message is somewhere: what is in no table of its own and has not ended is a member of a lease. Answers how many
-- there are, and the first ten.
WITH placed AS (
    SELECT seq FROM mailslot.ready
    UNION ALL SELECT seq FROM mailslot.parked
    UNION ALL SELECT seq FROM mailslot.suspended
    UNION ALL
    SELECT u.seq FROM mailslot.lease AS l CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
    WHERE get_bit(l.settled, (u.place - 1)::integer) = 0
    UNION ALL
    SELECT last.seq
    FROM (
        SELECT DISTINCT ON (seq) seq, kind FROM mailslot.outcome
        ORDER BY seq DESC, generation DESC, attempt DESC, kind DESC
    ) AS last
    WHERE last.kind BETWEEN 4 AND 7
),
bad AS (
    SELECT m.seq AS what FROM mailslot.message AS m WHERE NOT EXISTS (SELECT 1 FROM placed WHERE placed.seq = m.seq)
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
