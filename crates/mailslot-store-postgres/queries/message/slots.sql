-- Where the messages $1 stand: what is needed to move them. A leased one is moved by its worker only, so what its lease
-- knows of it is left out. A dead letter that is the head of its session is named by the session alone.
SELECT
    r.seq, r.lane, r.priority, r.generation, r.attempt,
    COALESCE(r.placed_session, (
        SELECT s.id FROM mailslot.session AS s
        WHERE s.endpoint = r.endpoint AND s.tenant = COALESCE(r.tenant, '') AND s.key = r.session AND s.head = r.seq
    )),
    r.key_policy, r.status
FROM unnest($1::bigint[]) AS wanted(seq)
CROSS JOIN LATERAL (SELECT record.* FROM mailslot.record AS record WHERE record.seq = wanted.seq OFFSET 0) AS r
ORDER BY r.seq
