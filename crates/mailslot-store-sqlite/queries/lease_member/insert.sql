-- ?1: JSON array of the claimed seqs, which are still pending; ?2: the lease. What a member needs to know comes from
-- its pending row: one look-up by key costs a third of seven look-ups in JSON. A lease begins the next attempt.
INSERT INTO mailslot_lease_member (seq, lease, lane, priority, generation, attempt, session, key_policy)
SELECT r.seq, ?2, r.lane, r.priority, r.generation, r.attempt + 1, r.session, r.key_policy
FROM json_each(?1) AS claimed
CROSS JOIN mailslot_ready AS r ON r.seq = claimed.value
