-- Leaves a mark in the session, to see whether another connection meets it there: see connection probing.
SELECT 1 FROM (SELECT set_config('mailslot_probe.mark', $1::text, false)) AS marked
