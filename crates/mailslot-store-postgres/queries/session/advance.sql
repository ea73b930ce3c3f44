-- The first that waits becomes the head. Run after delete_released.sql, so each of these has one. Arrays: $1 session,
-- $2 head that left.
UPDATE mailslot.session AS s
SET head = (SELECT p.seq FROM mailslot.parked AS p WHERE p.session = s.id ORDER BY p.seq LIMIT 1)
FROM unnest($1::bigint[], $2::bigint[]) AS released(id, head)
WHERE s.id = released.id AND s.head = released.head
RETURNING s.id, s.head
