-- ?1: JSON array of [seq, lane, priority, generation, attempt, session, key_policy]; ?2: the lease.
INSERT INTO mailslot_lease_member (seq, lease, lane, priority, generation, attempt, session, key_policy)
SELECT value ->> 0, ?2, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
FROM jsonb_each(?1)
