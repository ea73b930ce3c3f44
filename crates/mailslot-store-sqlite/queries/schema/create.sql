-- Which migrations were run. Our own table instead of `user_version`, which belongs to the application if it shares
-- the file.
CREATE TABLE IF NOT EXISTS mailslot_schema (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    migrated_at INTEGER NOT NULL
) STRICT
