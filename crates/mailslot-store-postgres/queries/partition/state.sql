-- The newest partition with its bounds and age, the last number that was given out, and the time.
SELECT
    p.lower, p.upper, p.created_at,
    (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM mailslot.message_seq),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM (VALUES (1)) AS one
LEFT JOIN (SELECT lower, upper, created_at FROM mailslot.partition ORDER BY lower DESC LIMIT 1) AS p ON true
