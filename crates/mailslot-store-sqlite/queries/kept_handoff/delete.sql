-- ?1 id.
DELETE FROM mailslot_kept_handoff WHERE id = ?1
