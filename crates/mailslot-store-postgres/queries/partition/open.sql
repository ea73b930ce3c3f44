-- The partition that takes the next messages: its bounds, the last number, when its first message was accepted, and the
-- time.
SELECT
    p.lower, p.upper, s.last,
    (SELECT m.accepted_at FROM mailslot.message AS m WHERE m.seq >= p.lower AND m.seq < p.upper ORDER BY m.seq LIMIT 1),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM (SELECT last_value AS last FROM mailslot.message_seq) AS s
JOIN mailslot.partition AS p ON p.lower <= s.last AND s.last < p.upper
