-- Every member of the leases ?1, a JSON array of generations, in the form of find_settled.sql.
SELECT json_group_array(json_array(
    b.seq, b.lane, b.priority, b.generation, b.attempt, b.session, b.key_policy, b.lease, b.cancel_requested
))
FROM json_each(?1) AS held CROSS JOIN mailslot_lease_member AS b ON b.lease = held.value
