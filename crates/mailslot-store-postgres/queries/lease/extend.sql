-- Moves the end of leases and gives back which of their open members someone asked to cancel. $1 time or NULL for the
-- server's, $2 for how long; arrays: $3 generation, $4 owner.
UPDATE mailslot.lease AS l
SET until = COALESCE($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) + $2::bigint
FROM unnest($3::bigint[], $4::uuid[]) AS held(generation, owner)
WHERE l.generation = held.generation AND l.owner = held.owner
RETURNING l.generation, l.owner, l.until, CASE WHEN l.cancels IS NOT NULL THEN (
    SELECT string_agg(u.seq::text, ',' ORDER BY u.seq) FROM unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
    WHERE u.seq = ANY (l.cancels) AND get_bit(l.settled, (u.place - 1)::integer) = 0
) END
