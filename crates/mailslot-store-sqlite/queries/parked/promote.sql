-- New heads become pending and keep their own due time. ?1: JSON array of [session, seq].
INSERT INTO mailslot_ready (seq, lane, priority, due_at, generation, attempt, session, key_policy)
SELECT p.seq, p.lane, p.priority, p.due_at, 0, 0, p.session, p.key_policy
FROM jsonb_each(?1) AS head
CROSS JOIN mailslot_parked AS p ON p.session = head.value ->> 0 AND p.seq = head.value ->> 1
RETURNING lane
