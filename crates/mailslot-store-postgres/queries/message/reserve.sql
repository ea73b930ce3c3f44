-- The next $1 numbers, in order. Taken after the sessions are locked, so that a session's order is that of its numbers.
SELECT nextval('mailslot.message_seq') FROM generate_series(1, $1::bigint)
