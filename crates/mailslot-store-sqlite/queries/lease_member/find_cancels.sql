-- Members of the leases ?1 that someone asked to cancel.
SELECT b.lease, b.seq
FROM json_each(?1) AS held CROSS JOIN mailslot_lease_member AS b ON b.lease = held.value
WHERE b.cancel_requested = 1
ORDER BY b.seq
