-- $1 id, $2 error or NULL, $3 time or NULL for the server's, $4 for how long in microseconds, $5 most that are kept. A later
-- one replaces an earlier one.
INSERT INTO mailslot.kept_handoff (id, error, until)
SELECT
    $1::uuid, $2::text,
    COALESCE($3::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) + $4::bigint
WHERE (SELECT count(*) FROM mailslot.kept_handoff) < $5::bigint
ON CONFLICT (id) DO UPDATE SET error = EXCLUDED.error, until = EXCLUDED.until
