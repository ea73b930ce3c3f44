-- Tells the processes that listen on $1 that there may be work. $2 says who tells.
SELECT 1 FROM (SELECT pg_notify($1::text, $2::text)) AS told
