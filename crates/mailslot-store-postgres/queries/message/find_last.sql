-- The place of the last message that is there.
SELECT COALESCE((SELECT seq FROM mailslot.message ORDER BY seq DESC LIMIT 1), 0)
