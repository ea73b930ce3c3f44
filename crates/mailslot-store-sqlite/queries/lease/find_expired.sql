-- Leases whose time is over, the longest first. There is one row for each claimed batch, so a scan is short.
SELECT generation FROM mailslot_lease WHERE until <= ?1 ORDER BY until, generation LIMIT ?2
