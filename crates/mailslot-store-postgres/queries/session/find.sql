-- The sessions of a batch, which are locked: their places in the arrays, their numbers, whether they have a head, and
-- how many wait, counted no further than $4. Arrays: $1 endpoint, $2 tenant or '', $3 key.
SELECT
    wanted.place, s.id, s.head <> 0,
    (SELECT count(*) FROM (SELECT 1 FROM mailslot.parked AS p WHERE p.session = s.id LIMIT $4::bigint) AS waiting)
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS wanted(endpoint, tenant, key, place)
JOIN mailslot.session AS s USING (endpoint, tenant, key)
