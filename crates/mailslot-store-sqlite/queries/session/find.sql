-- The sessions ?1, a JSON array of [endpoint, tenant or '', key], with how many wait, counted no further than ?2.
SELECT
    wanted.key, s.id,
    (SELECT COUNT(*) FROM (SELECT 1 FROM mailslot_parked AS p WHERE p.session = s.id LIMIT ?2))
FROM jsonb_each(?1) AS wanted
CROSS JOIN mailslot_session AS s
    ON s.endpoint = wanted.value ->> 0 AND s.tenant = wanted.value ->> 1 AND s.key = wanted.value ->> 2
