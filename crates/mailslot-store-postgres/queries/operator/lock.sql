-- One change by an operator at a time, so that operators and maintenance do not race each other. The name of the lock
-- has that of the schema in it.
SELECT 1 FROM (SELECT pg_advisory_xact_lock(hashtextextended('mailslot.operator', 0))) AS locked
