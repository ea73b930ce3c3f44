-- A lease is over with its last message. ?1: JSON array of generations.
DELETE FROM mailslot_lease
WHERE generation IN (SELECT value FROM json_each(?1))
  AND NOT EXISTS (SELECT 1 FROM mailslot_lease_member AS b WHERE b.lease = mailslot_lease.generation)
