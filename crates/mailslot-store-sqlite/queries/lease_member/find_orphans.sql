-- Members whose lease is gone, in the form of find_settled.sql.
SELECT json_group_array(json_array(
    b.seq, b.lane, b.priority, b.generation, b.attempt, b.session, b.key_policy, b.lease, b.cancel_requested
))
FROM mailslot_lease_member AS b
WHERE NOT EXISTS (SELECT 1 FROM mailslot_lease AS l WHERE l.generation = b.lease)
