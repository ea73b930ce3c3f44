-- As share.sql, for an operator, who waits until the partition is dropped.
SELECT 1 FROM (SELECT pg_advisory_xact_lock_shared(hashtextextended('mailslot.deletion', 0))) AS locked
