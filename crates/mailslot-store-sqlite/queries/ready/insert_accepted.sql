-- The plain accept: the new messages from ?1 to ?2 are due at once and belong to no session. As insert.sql, but from
-- the rows that were just written, so without look-ups in JSON.
INSERT INTO mailslot_ready (seq, lane, priority, due_at, generation, attempt, session, key_policy)
SELECT seq, lane, priority, accepted_at, 0, 0, NULL, key_policy
FROM mailslot_message
WHERE seq BETWEEN ?1 AND ?2
