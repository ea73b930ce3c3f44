-- Messages that are nowhere, at most $1, as slots.sql has them: of the attempt that followed the last one whose end is
-- known (a requeue, kind 8, began a new generation). The head of a session and a message without one were leased, others
-- were parked; those whose session is gone stay out.
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
)
SELECT
    m.seq, m.lane, m.priority,
    COALESCE(last.generation + CASE WHEN last.kind = 8 THEN 1 ELSE 0 END, 0),
    CASE WHEN last.kind = 8 THEN 1 ELSE COALESCE(last.attempt, 0) + 1 END,
    s.id, m.key_policy, CASE WHEN s.head <> m.seq THEN 'parked' ELSE 'leased' END
FROM mailslot.message AS m
JOIN mailslot.lane AS lane ON lane.id = m.lane
LEFT JOIN mailslot.session AS s
    ON s.endpoint = lane.endpoint AND s.tenant = COALESCE(m.tenant, '') AND s.key = m.session AND s.head <= m.seq
LEFT JOIN LATERAL (
    SELECT o.kind, o.generation, o.attempt FROM mailslot.outcome AS o WHERE o.seq = m.seq
    ORDER BY o.generation DESC, o.attempt DESC, o.kind DESC LIMIT 1
) AS last ON true
WHERE NOT EXISTS (SELECT 1 FROM placed WHERE placed.seq = m.seq) AND (m.session IS NULL OR s.id IS NOT NULL)
LIMIT $1::bigint
