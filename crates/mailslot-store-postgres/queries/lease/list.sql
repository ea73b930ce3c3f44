-- Leases for people, oldest end first, at most $1.
SELECT owner, label, generation, until, open FROM mailslot.lease ORDER BY until, generation LIMIT $1::bigint
