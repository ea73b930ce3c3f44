-- Whether the schema $1 is there, whether it has our table of migrations, and how many tables it has in all.
SELECT
    EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1::text),
    to_regclass($1 || '.migration') IS NOT NULL,
    (SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))
