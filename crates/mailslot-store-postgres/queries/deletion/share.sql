-- For a transaction that deletes messages one by one: whether no partition is being dropped, whose messages have been
-- counted already.
SELECT pg_try_advisory_xact_lock_shared(hashtextextended('mailslot.deletion', 0))
