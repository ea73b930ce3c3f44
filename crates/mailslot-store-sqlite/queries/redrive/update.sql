-- Where a redrive stands now.
UPDATE mailslot_redrive SET state = ?2, requeued = ?3, updated_at = ?4, passed = ?5 WHERE id = ?1
