-- What is known of deliveries, and which messages sessions wait for: 0 with the place of a delivery in $1, the time of its
-- record, whether that is the end of a claim, and its message; 1 with the place of a session and its head. Arrays: $1 keys;
-- $3 endpoint, $4 tenant or '', $5 key of sessions; $2: time or NULL for the server's.
-- A claim that is over counts for nothing, and neither does a record whose message is not there.
WITH clock AS MATERIALIZED (
    SELECT COALESCE($2::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) AS now
)
SELECT 0::bigint, wanted.place - 1, d.recorded_at, (d.owner IS NOT NULL)::integer::bigint, r.id, r.status
FROM unnest($1::bytea[]) WITH ORDINALITY AS wanted(key, place)
JOIN mailslot.delivery AS d USING (key)
LEFT JOIN mailslot.record AS r ON r.seq = d.seq
WHERE (d.owner IS NULL OR d.recorded_at > (SELECT now FROM clock)) AND (d.seq IS NULL OR r.seq IS NOT NULL)
UNION ALL
SELECT 1, wanted.place - 1, NULL, NULL, m.id, NULL
FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS wanted(endpoint, tenant, key, place)
JOIN mailslot.session AS s USING (endpoint, tenant, key)
JOIN mailslot.message AS m ON m.seq = s.head
