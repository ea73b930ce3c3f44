-- The first suspended message of an id.
SELECT m.seq FROM mailslot_message AS m CROSS JOIN mailslot_suspended AS s ON s.seq = m.seq
WHERE m.id = ?1 ORDER BY m.seq LIMIT 1
