-- Since when the message is due that has been due longest, and the time. $1 time or NULL for the server's; arrays, for each
-- lane and class: $2 lane, $3 class, $4 due times from which on to look.
SELECT
    (SELECT min(due.due_at) FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS b(lane, priority, since)
     CROSS JOIN LATERAL (
        SELECT r.due_at FROM mailslot.ready AS r
        WHERE r.lane = b.lane AND r.priority = b.priority AND r.due_at >= b.since
        ORDER BY r.due_at LIMIT 1
     ) AS due),
    COALESCE($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)
