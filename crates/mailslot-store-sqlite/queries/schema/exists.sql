-- Whether any migration was ever run here.
SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'mailslot_schema'
