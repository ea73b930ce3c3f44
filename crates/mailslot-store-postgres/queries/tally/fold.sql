-- Adds up what transactions wrote, and says how many rows went. A few are not worth it: reading them costs less than
-- writing their sums. Rows that someone else is adding up are passed over.
WITH gone AS (
    DELETE FROM mailslot.tally
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mailslot.tally
        WHERE 1000 = (SELECT count(*) FROM (SELECT 1 FROM mailslot.tally LIMIT 1000) AS first)
        LIMIT 10000 FOR UPDATE SKIP LOCKED
    ))
    RETURNING lane, status, messages
),
sums AS (
    INSERT INTO mailslot.tally (lane, status, messages)
    SELECT lane, status, sum(messages)::bigint FROM gone GROUP BY lane, status HAVING sum(messages) <> 0
)
SELECT count(*) FROM gone
