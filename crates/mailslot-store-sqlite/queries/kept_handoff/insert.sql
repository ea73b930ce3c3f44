-- ?1 id, ?2 error or NULL, ?3 until, ?4 most that are kept. A later one replaces an earlier one.
INSERT INTO mailslot_kept_handoff (id, error, until)
SELECT ?1, ?2, ?3 WHERE (SELECT COUNT(*) FROM mailslot_kept_handoff) < ?4
ON CONFLICT (id) DO UPDATE SET error = excluded.error, until = excluded.until
