-- The first suspended message of the id $1.
SELECT s.seq FROM mailslot.message AS m JOIN mailslot.suspended AS s USING (seq) WHERE m.id = $1::uuid
ORDER BY s.seq LIMIT 1
