-- The first that waits becomes the head. Run after delete_released.sql, so each of these has one.
-- ?1: JSON array of [session, ended head].
UPDATE mailslot_session
SET head = (SELECT MIN(p.seq) FROM mailslot_parked AS p WHERE p.session = mailslot_session.id)
WHERE id IN (
    SELECT s.id FROM jsonb_each(?1) AS released
    CROSS JOIN mailslot_session AS s ON s.id = released.value ->> 0 AND s.head = released.value ->> 1
)
RETURNING id, head
