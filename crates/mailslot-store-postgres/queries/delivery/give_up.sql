-- Gives up a claim. $1 key, as an array, $2 owner.
DELETE FROM mailslot.delivery WHERE key = ANY ($1::bytea[]) AND owner = $2::uuid
