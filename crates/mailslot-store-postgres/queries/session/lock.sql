-- Makes the sessions of a batch exist and locks them until the end of the transaction, in one order for everybody. A
-- new one has no head and a number for the time being. Arrays: $1 endpoint, $2 tenant or '', $3 key. The update changes
-- nothing; it makes the row ours.
INSERT INTO mailslot.session AS s (id, endpoint, tenant, key, head)
SELECT nextval('mailslot.message_seq'), endpoint, tenant, key, 0
FROM (
    SELECT endpoint, tenant, key FROM unnest($1::text[], $2::text[], $3::text[]) AS u(endpoint, tenant, key)
    ORDER BY endpoint COLLATE "C", tenant COLLATE "C", key COLLATE "C"
) AS wanted
ON CONFLICT (endpoint, tenant, key) DO UPDATE SET head = s.head
