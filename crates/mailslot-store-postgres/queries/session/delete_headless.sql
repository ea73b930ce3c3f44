-- Sessions that were made for messages which then were not stored. $1: their numbers; they are locked.
DELETE FROM mailslot.session WHERE id = ANY($1::bigint[]) AND head = 0
