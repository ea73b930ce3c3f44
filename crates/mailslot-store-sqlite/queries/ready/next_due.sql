-- When the next message of the lanes becomes due after ?2. One index look-up for each lane and class.
SELECT MIN((
    SELECT MIN(r.due_at) FROM mailslot_ready AS r
    WHERE r.lane = lane.id AND r.priority = class.value AND r.due_at > ?2
))
FROM jsonb_each(?1) AS wanted
CROSS JOIN mailslot_lane AS lane
    ON lane.endpoint = wanted.value ->> 0 AND lane.contract = wanted.value ->> 1
    AND lane.version = wanted.value ->> 2
CROSS JOIN json_each('[0,1,2]') AS class
