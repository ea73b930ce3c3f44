-- ?1: JSON array of [endpoint, contract, version]. Returns the place in the array and the id.
SELECT wanted.key, lane.id
FROM jsonb_each(?1) AS wanted
CROSS JOIN mailslot_lane AS lane
    ON lane.endpoint = wanted.value ->> 0 AND lane.contract = wanted.value ->> 1
    AND lane.version = wanted.value ->> 2
