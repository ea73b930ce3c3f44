-- The mark that leave_mark.sql left in this session, if any, and since when there is the session, in microseconds.
SELECT
    COALESCE(current_setting('mailslot_probe.mark', true), ''),
    (SELECT ((extract(epoch FROM backend_start) * 1000000)::bigint)::text FROM pg_stat_activity
     WHERE pid = pg_backend_pid())
