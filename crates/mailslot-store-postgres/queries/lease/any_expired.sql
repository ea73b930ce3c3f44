-- Whether any lease is over. $1: time or NULL for the server's.
SELECT EXISTS (
    SELECT 1 FROM mailslot.lease
    WHERE until <= COALESCE($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)
)
