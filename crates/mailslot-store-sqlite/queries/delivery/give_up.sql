-- Gives up a claim. ?1 key, ?2 owner.
DELETE FROM mailslot_delivery WHERE key = ?1 AND owner = ?2
