-- Numbers endpoints and contracts that have no number yet. $1 endpoints, $2 contracts, $3 versions.
INSERT INTO mailslot.lane (endpoint, contract, version)
SELECT DISTINCT endpoint, contract, version FROM unnest($1::text[], $2::text[], $3::bigint[]) AS u(endpoint, contract, version)
ORDER BY endpoint, contract, version
ON CONFLICT (endpoint, contract, version) DO NOTHING
