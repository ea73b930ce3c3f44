-- The leases ?2 with their owners, and the members among ?1 (both JSON arrays): all that decides whether a settlement
-- holds. One row of JSON, because each row that crosses from the driver's thread costs microseconds.
SELECT
    (SELECT json_group_array(json_array(l.generation, hex(l.owner)))
     FROM json_each(?2) AS token CROSS JOIN mailslot_lease AS l ON l.generation = token.value),
    (SELECT json_group_array(json_array(
        b.seq, b.lane, b.priority, b.generation, b.attempt, b.session, b.key_policy, b.lease, b.cancel_requested
     ))
     FROM json_each(?1) AS settled CROSS JOIN mailslot_lease_member AS b ON b.seq = settled.value)
