-- The numbers of endpoints and contracts, with their places in the arrays.
SELECT wanted.place, lane.id
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS wanted(endpoint, contract, version, place)
JOIN mailslot.lane AS lane USING (endpoint, contract, version)
