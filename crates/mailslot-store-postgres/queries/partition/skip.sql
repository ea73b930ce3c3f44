-- Lets the next message begin the next partition. $1: where it begins, far above the last number.
SELECT setval('mailslot.message_seq', $1::bigint, false)
