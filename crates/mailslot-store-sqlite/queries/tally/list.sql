-- How many messages stand where.
SELECT lane.endpoint, lane.contract, lane.version, t.status, t.messages
FROM mailslot_tally AS t JOIN mailslot_lane AS lane ON lane.id = t.lane
WHERE t.messages > 0
