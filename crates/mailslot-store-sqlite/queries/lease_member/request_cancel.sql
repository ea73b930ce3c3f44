-- ?1: JSON array of seqs. The request reaches the worker with its next heartbeat.
UPDATE mailslot_lease_member SET cancel_requested = 1 WHERE seq IN (SELECT value FROM json_each(?1))
