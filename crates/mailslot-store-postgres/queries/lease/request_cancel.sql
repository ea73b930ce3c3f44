-- Asks for an end of the leased messages $1; the request reaches the worker with its next heartbeat. Gives for each
-- lease how many requests are new. The leases are locked before they are looked at again: what was settled meanwhile is
-- asked of nobody. IS TRUE keeps the test by IN a look-up in a hash, which as a join would be planned by statistics.
WITH holding AS MATERIALIZED (
    SELECT DISTINCT l.generation FROM mailslot.lease AS l CROSS JOIN LATERAL unnest(l.seqs) AS u(seq)
    WHERE (u.seq IN (SELECT unnest($1::bigint[]))) IS TRUE
),
locked AS MATERIALIZED (
    SELECT l.generation, l.seqs, l.settled, l.cancels FROM mailslot.lease AS l
    WHERE l.generation = ANY (ARRAY(SELECT generation FROM holding))
    ORDER BY l.generation FOR UPDATE
),
asked AS MATERIALIZED (
    SELECT l.generation, array_agg(u.seq) AS seqs
    FROM locked AS l CROSS JOIN LATERAL unnest(l.seqs) WITH ORDINALITY AS u(seq, place)
    WHERE (u.seq IN (SELECT unnest($1::bigint[]))) IS TRUE
      AND get_bit(l.settled, (u.place - 1)::integer) = 0
      AND NOT COALESCE(u.seq = ANY (l.cancels), false)
    GROUP BY l.generation
)
UPDATE mailslot.lease AS l SET cancels = COALESCE(l.cancels, '{}') || asked.seqs
FROM asked WHERE l.generation = asked.generation
RETURNING cardinality(asked.seqs)
