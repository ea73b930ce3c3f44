-- Since when the message of the endpoint ?1 is due that has been due longest. One look-up for each lane and class.
SELECT MIN((
    SELECT r.due_at FROM mailslot_ready AS r WHERE r.lane = lane.id AND r.priority = class.value
    ORDER BY r.due_at LIMIT 1
))
FROM mailslot_lane AS lane CROSS JOIN json_each('[0,1,2]') AS class
WHERE lane.endpoint = ?1
