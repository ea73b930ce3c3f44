-- A redrive begins before the first message and ends at the last one that is there now.
INSERT INTO mailslot_redrive (id, filter, rate, state, total, requeued, created_at, updated_at, passed, last)
VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, 0, ?7)
