-- Whether the owner $1 holds a message of which the two attempts before the present one expired (kind 2).
SELECT EXISTS (
    SELECT 1 FROM mailslot.lease AS l
    CROSS JOIN LATERAL unnest(l.seqs, l.generations, l.attempts) WITH ORDINALITY
        AS u(seq, generation, attempt, place)
    WHERE l.owner = $1::uuid AND u.attempt > 2 AND get_bit(l.settled, (u.place - 1)::integer) = 0
      AND 2 = (
        SELECT count(*) FROM mailslot.outcome AS o
        WHERE o.seq = u.seq AND o.generation = COALESCE(u.generation, 0)
          AND o.attempt IN (u.attempt - 1, u.attempt - 2) AND o.kind = 2
      )
)
