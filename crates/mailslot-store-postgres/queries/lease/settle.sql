-- Takes members out of leases, which are locked; a lease without open members goes. Arrays: $1 generation, $2 how many
-- of its members, $3 which, as bits.
WITH given AS MATERIALIZED (
    SELECT generation, n, mask::bit varying AS mask FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS u(generation, n, mask)
), gone AS (
    DELETE FROM mailslot.lease AS l USING given AS g WHERE l.generation = g.generation AND l.open = g.n
)
UPDATE mailslot.lease AS l SET open = l.open - g.n, settled = l.settled | g.mask
FROM given AS g WHERE l.generation = g.generation AND l.open > g.n
