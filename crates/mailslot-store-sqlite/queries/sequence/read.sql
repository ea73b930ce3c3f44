-- The last number that was given out.
SELECT value FROM mailslot_sequence WHERE name = ?1
