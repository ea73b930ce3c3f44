-- New sessions get their heads, and are numbered by them. Arrays: $1 endpoint, $2 tenant or '', $3 key, $4 head.
UPDATE mailslot.session AS s SET id = u.head, head = u.head
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS u(endpoint, tenant, key, head)
WHERE s.endpoint = u.endpoint AND s.tenant = u.tenant AND s.key = u.key
