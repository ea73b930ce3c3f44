-- Lets one program at a time change the schema, until the end of its transaction.
SELECT 1 FROM (SELECT pg_advisory_xact_lock(hashtextextended('mailslot.migration', 0))) AS locked
