-- ?1: JSON array of [head, [endpoint, tenant or '', key]]. A session is numbered by its first head.
INSERT INTO mailslot_session (id, endpoint, tenant, key, head)
SELECT value ->> 0, value ->> '$[1][0]', value ->> '$[1][1]', value ->> '$[1][2]', value ->> 0 FROM jsonb_each(?1)
