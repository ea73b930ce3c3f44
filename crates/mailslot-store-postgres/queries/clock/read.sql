-- The time that a transaction's changes carry. $1: a test's time, or NULL for the server's.
SELECT COALESCE($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
