-- Counters move with the messages, in the same transaction. Arrays: $1 lane, $2 status, $3 difference.
INSERT INTO mailslot.tally (lane, status, messages)
SELECT lane, status, messages FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS u(lane, status, messages)
