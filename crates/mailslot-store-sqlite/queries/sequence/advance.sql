-- Reserves ?2 numbers and returns the last one. As the first statement of an append it takes the write lock, so a
-- caller's deferred transaction cannot find out too late that its snapshot is old (SQLITE_BUSY_SNAPSHOT).
UPDATE mailslot_sequence SET value = value + ?2 WHERE name = ?1 RETURNING value
