-- Remembers a migration.
INSERT INTO mailslot_schema (version, name, migrated_at) VALUES (?1, ?2, ?3)
