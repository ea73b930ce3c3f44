-- Sessions by key, with their heads. ?1: only those that wait for someone.
SELECT s.endpoint, s.tenant, s.key, r.id, r.status,
    (SELECT COUNT(*) FROM mailslot_parked AS p WHERE p.session = s.id)
FROM mailslot_session AS s
CROSS JOIN mailslot_record AS r ON r.seq = s.head
WHERE ?1 = 0 OR r.status IN ('dead_lettered', 'suspended')
ORDER BY s.endpoint, s.tenant, s.key LIMIT ?2
