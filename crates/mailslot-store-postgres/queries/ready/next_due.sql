-- When the next message of the lanes becomes due after $3. Arrays: $1 lane, $2 class.
SELECT min(next.due_at)
FROM unnest($1::bigint[], $2::bigint[]) AS b(lane, priority)
CROSS JOIN LATERAL (
    SELECT r.due_at FROM mailslot.ready AS r
    WHERE r.lane = b.lane AND r.priority = b.priority AND r.due_at > $3::bigint
    ORDER BY r.due_at LIMIT 1
) AS next
