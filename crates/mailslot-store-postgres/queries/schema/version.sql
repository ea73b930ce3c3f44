-- The newest migration that was run (0 for none), and the oldest program that can work with the schema as it is.
SELECT COALESCE(max(version), 0), COALESCE(max(oldest_program), 0) FROM mailslot.migration
