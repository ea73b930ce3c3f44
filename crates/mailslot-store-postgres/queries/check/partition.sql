-- The partitions are those that are listed, each of both tables, and they take the next million messages. Answers how
-- many are wrong, and the first ten.
WITH attached AS (
    SELECT parent.relname || ' ' || pg_get_expr(child.relpartbound, child.oid) AS what
    FROM pg_inherits AS i
    JOIN pg_class AS parent ON parent.oid = i.inhparent
    JOIN pg_class AS child ON child.oid = i.inhrelid
    WHERE i.inhparent IN ('mailslot.message'::regclass, 'mailslot.outcome'::regclass)
),
listed AS (
    SELECT format('%s FOR VALUES FROM (%L) TO (%L)', parent.name, p.lower, p.upper) AS what
    FROM mailslot.partition AS p CROSS JOIN (VALUES ('message'), ('outcome')) AS parent(name)
),
bad AS (
    SELECT COALESCE(listed.what, attached.what) AS what
    FROM listed FULL JOIN attached ON attached.what = listed.what
    WHERE listed.what IS NULL OR attached.what IS NULL
    UNION ALL
    SELECT 'none for number ' || next.seq
    FROM mailslot.message_seq AS s CROSS JOIN LATERAL (VALUES (s.last_value + 1), (s.last_value + 1000000)) AS next(seq)
    WHERE NOT EXISTS (SELECT 1 FROM mailslot.partition AS p WHERE p.lower <= next.seq AND next.seq < p.upper)
)
SELECT count(*), (SELECT string_agg(what, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
