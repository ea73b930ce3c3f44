-- Moves the end of leases and gives back which of their open members someone asked to cancel. $1 time or NULL for the
-- server's, $2 for how long; arrays: $3 generation, $4 owner.
-- A lease that is locked is being settled or taken back right now. It is not waited for, because the others would run out
-- meanwhile: it is answered as it stands, and that it is not extended. The test by IN is looked up in a hash because of
-- the NOT.
WITH given AS MATERIALIZED (
    SELECT generation, owner FROM unnest($3::bigint[], $4::uuid[]) AS u(generation, owner)
),
free AS MATERIALIZED (
    SELECT l.generation FROM given AS g JOIN mailslot.lease AS l USING (generation, owner) FOR UPDATE OF l SKIP LOCKED
),
extended AS (
    UPDATE mailslot.lease AS l
    SET until = COALESCE($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) + $2::bigint
    FROM free WHERE l.generation = free.generation
    RETURNING l.generation, l.owner, l.until, l.cancels, l.seqs, l.settled
),
held AS (
    SELECT *, true AS is_extended FROM extended
    UNION ALL
    SELECT l.generation, l.owner, l.until, l.cancels, l.seqs, l.settled, false
    FROM given AS g JOIN mailslot.lease AS l USING (generation, owner)
    WHERE NOT g.generation IN (SELECT generation FROM free)
)
SELECT generation, owner, until, CASE WHEN cancels IS NOT NULL THEN (
    SELECT string_agg(u.seq::text, ',' ORDER BY u.seq) FROM unnest(seqs) WITH ORDINALITY AS u(seq, place)
    WHERE u.seq = ANY (cancels) AND get_bit(settled, (u.place - 1)::integer) = 0
) END, is_extended
FROM held
