-- Forgets what protects the messages from $3 on and before $4, in the pages from $1 on and before $2: an index by
-- message would be one more for every accept to write, and a partition is dropped once a day.
DELETE FROM mailslot.ledger
WHERE ctid >= format('(%s,0)', $1::bigint)::tid AND ctid < format('(%s,0)', $2::bigint)::tid
  AND seq >= $3::bigint AND seq < $4::bigint
