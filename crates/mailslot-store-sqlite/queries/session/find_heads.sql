-- The messages that sessions wait for. ?1: JSON array of [endpoint, tenant or '', key].
SELECT wanted.key, m.id
FROM jsonb_each(?1) AS wanted
CROSS JOIN mailslot_session AS s
    ON s.endpoint = wanted.value ->> 0 AND s.tenant = wanted.value ->> 1 AND s.key = wanted.value ->> 2
CROSS JOIN mailslot_message AS m ON m.seq = s.head
