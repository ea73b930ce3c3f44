-- The mark that leave_mark.sql left in this session, if any.
SELECT COALESCE(current_setting('mailslot_probe.mark', true), '')
