-- Forgets the sessions whose head ended and behind which nobody waits. ?1: JSON array of [session, ended head].
DELETE FROM mailslot_session
WHERE id IN (
    SELECT s.id FROM jsonb_each(?1) AS released
    CROSS JOIN mailslot_session AS s ON s.id = released.value ->> 0 AND s.head = released.value ->> 1
)
AND NOT EXISTS (SELECT 1 FROM mailslot_parked AS p WHERE p.session = mailslot_session.id)
