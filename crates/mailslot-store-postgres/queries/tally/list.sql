-- How many messages stand where.
SELECT lane.endpoint, lane.contract, lane.version, t.status, t.messages
FROM (
    SELECT lane, status, sum(messages)::bigint AS messages FROM mailslot.tally GROUP BY lane, status HAVING sum(messages) > 0
) AS t
JOIN mailslot.lane AS lane ON lane.id = t.lane
