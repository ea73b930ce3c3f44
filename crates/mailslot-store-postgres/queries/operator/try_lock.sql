-- As lock.sql, for maintenance: whether nobody else is at it.
SELECT pg_try_advisory_xact_lock(hashtextextended('mailslot.operator', 0))
