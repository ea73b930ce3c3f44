-- The schema $1 in words, a line for each thing that our statements rely on, to compare with what the migrations write.
-- Partitions come and go, so only what they inherit from is described.
WITH ours AS (
    SELECT c.oid, c.relname, c.relkind FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text AND NOT c.relispartition
), line AS (
    SELECT 'column ' || o.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
        || CASE a.attidentity WHEN 'a' THEN ' identity' ELSE '' END
        || CASE WHEN c.collname = 'C' THEN ' collate C' ELSE '' END AS text
    FROM ours AS o JOIN pg_attribute AS a ON a.attrelid = o.oid LEFT JOIN pg_collation AS c ON c.oid = a.attcollation
    WHERE o.relkind IN ('r', 'p', 'v') AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'index ' || replace(pg_get_indexdef(o.oid), $1 || '.', '')
    FROM ours AS o JOIN pg_index AS i ON i.indexrelid = o.oid
    WHERE NOT EXISTS (SELECT 1 FROM pg_constraint AS k WHERE k.conrelid = i.indrelid AND k.conindid = o.oid)
    UNION ALL
    SELECT 'constraint ' || o.relname || ' ' || pg_get_constraintdef(k.oid)
    FROM ours AS o JOIN pg_constraint AS k ON k.conrelid = o.oid WHERE k.contype IN ('c', 'p', 'u', 'x', 'f')
    UNION ALL
    SELECT 'partitioned ' || o.relname || ' ' || pg_get_partkeydef(o.oid) FROM ours AS o WHERE o.relkind = 'p'
    UNION ALL
    SELECT 'trigger ' || o.relname || '.' || t.tgname FROM ours AS o JOIN pg_trigger AS t ON t.tgrelid = o.oid
    WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'sequence ' || o.relname FROM ours AS o WHERE o.relkind = 'S'
)
SELECT text COLLATE "C" FROM line ORDER BY 1
