-- Which migrations were run. `oldest_program`: the version that a program must at least know to work with the schema.
CREATE TABLE IF NOT EXISTS mailslot.migration (
    version integer PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    oldest_program integer NOT NULL,
    migrated_at bigint NOT NULL
)
