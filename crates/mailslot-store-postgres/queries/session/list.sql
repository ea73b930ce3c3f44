-- Sessions by key, with their heads, at most $2. $1: only those that wait for someone. A head that is pending waits for
-- nobody, which is asked first because it is cheap.
SELECT s.endpoint, s.tenant, s.key, r.id, r.status,
    (SELECT count(*) FROM mailslot.parked AS p WHERE p.session = s.id)
FROM mailslot.session AS s
CROSS JOIN LATERAL (SELECT record.* FROM mailslot.record AS record WHERE record.seq = s.head OFFSET 0) AS r
WHERE (NOT $1::boolean OR NOT EXISTS (SELECT 1 FROM mailslot.ready AS p WHERE p.seq = s.head))
  AND (NOT $1 OR r.status IN ('dead_lettered', 'suspended'))
ORDER BY s.endpoint, s.tenant, s.key LIMIT $2::bigint
