-- Those whose message is suspended, and those that were kept for long enough. $1 time or NULL for the server's, $2 limit.
SELECT k.id, k.error FROM mailslot.kept_handoff AS k
WHERE k.until <= COALESCE($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) OR EXISTS (
    SELECT 1 FROM mailslot.message AS m JOIN mailslot.suspended AS s USING (seq) WHERE m.id = k.id
)
ORDER BY k.id LIMIT $2::bigint
