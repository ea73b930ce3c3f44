-- A claim. Its generation is the fence.
INSERT INTO mailslot_lease (owner, label, until) VALUES (?1, ?2, ?3) RETURNING generation
