-- Moves the end of a lease that still belongs to the owner. No row: it is lost. ?1: JSON array of [generation, owner]
-- with the owner in hexadecimal.
UPDATE mailslot_lease SET until = ?2
FROM (SELECT value ->> 0 AS generation, unhex(value ->> 1) AS owner FROM jsonb_each(?1)) AS held
WHERE mailslot_lease.generation = held.generation AND mailslot_lease.owner = held.owner
RETURNING mailslot_lease.generation
