-- $1 id.
DELETE FROM mailslot.kept_handoff WHERE id = $1::uuid
