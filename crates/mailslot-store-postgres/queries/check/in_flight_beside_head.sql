-- A message of a session is pending, leased or suspended only as its head. Answers how many there are, and the first ten.
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
    SELECT flight.seq AS what
    FROM flight JOIN mailslot.message AS m ON m.seq = flight.seq
    WHERE (m.session IS NOT NULL OR flight.session IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM mailslot.session AS s WHERE s.id = flight.session AND s.head = flight.seq)
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
