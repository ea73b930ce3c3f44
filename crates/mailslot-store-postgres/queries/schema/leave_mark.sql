-- Leaves a mark in the session, to see whether another connection meets it there, and gives the time in microseconds.
SELECT ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint)::text
FROM (SELECT set_config('mailslot_probe.mark', $1::text, false)) AS marked
