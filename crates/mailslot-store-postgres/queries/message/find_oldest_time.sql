-- When the first message that is still there was accepted.
SELECT accepted_at FROM mailslot.message ORDER BY seq LIMIT 1
