-- Forgets the sessions whose head left and behind which nobody waits; they are locked. Arrays: $1 session, $2 head.
DELETE FROM mailslot.session AS s USING unnest($1::bigint[], $2::bigint[]) AS released(id, head)
WHERE s.id = released.id AND s.head = released.head
  AND NOT EXISTS (SELECT 1 FROM mailslot.parked AS p WHERE p.session = s.id)
