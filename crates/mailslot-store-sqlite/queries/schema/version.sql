-- The newest migration that was run; 0 for none.
SELECT COALESCE(MAX(version), 0) FROM mailslot_schema
