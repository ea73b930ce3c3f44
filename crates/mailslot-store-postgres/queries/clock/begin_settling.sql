-- The time that a settlement in a handler's transaction carries ($1: a test's time, or NULL for the server's), and from
-- here on a bound for the transaction, which now takes locks of the inbox: $2 milliseconds for a statement, $3 for the
-- client between two. If its line goes dead before the commit, nobody else would ever end it.
SELECT
    COALESCE($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    set_config('statement_timeout', $2::text, true),
    set_config('idle_in_transaction_session_timeout', $3::text, true)
