-- New heads become pending and keep their own due time. Arrays: $1 session, $2 seq. Gives their lanes and due times.
WITH head AS (
    DELETE FROM mailslot.parked AS p USING unnest($1::bigint[], $2::bigint[]) AS head(session, seq)
    WHERE p.session = head.session AND p.seq = head.seq
    RETURNING p.*
), placed AS (
    INSERT INTO mailslot.ready (seq, lane, priority, due_at, generation, attempt, session, key_policy)
    SELECT seq, lane, priority, due_at, 0, 0, session, key_policy FROM head
)
SELECT lane, priority, due_at FROM head
