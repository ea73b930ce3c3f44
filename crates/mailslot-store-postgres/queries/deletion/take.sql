-- For a transaction that drops a partition: whether nobody deletes messages, or will before it ends.
SELECT pg_try_advisory_xact_lock(hashtextextended('mailslot.deletion', 0))
