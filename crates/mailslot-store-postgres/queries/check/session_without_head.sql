-- The head of every session is pending, leased, suspended or dead-lettered, belongs to the session and knows it.
-- Answers how many there are, and the first ten.
WITH flight AS MATERIALIZED (
    SELECT seq, session FROM mailslot.ready
    UNION ALL SELECT seq, session FROM mailslot.suspended
    UNION ALL
    SELECT u.seq, u.session
    FROM mailslot.lease AS l
    CROSS JOIN LATERAL unnest(l.seqs, l.sessions) WITH ORDINALITY AS u(seq, session, place)
    WHERE get_bit(l.settled, (u.place - 1)::integer) = 0
),
bad AS (
    SELECT s.id AS what
    FROM mailslot.session AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM mailslot.message AS m JOIN mailslot.lane AS lane ON lane.id = m.lane
        WHERE m.seq = s.head AND lane.endpoint = s.endpoint AND COALESCE(m.tenant, '') = s.tenant AND m.session = s.key
    ) OR NOT (
        EXISTS (SELECT 1 FROM flight WHERE flight.seq = s.head AND flight.session = s.id)
        OR EXISTS (SELECT 1 FROM mailslot.record AS r WHERE r.seq = s.head AND r.status = 'dead_lettered')
    )
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
