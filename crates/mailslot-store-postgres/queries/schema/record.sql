-- Remembers a migration. $1 version, $2 name, $3 oldest program.
INSERT INTO mailslot.migration (version, name, oldest_program, migrated_at)
VALUES ($1::bigint, $2::text, $3::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
