-- Which of ?1, a JSON array of [seq, generation, attempt], are suspected of killing their workers: both of their last
-- two attempts expired (kind 2). And whether the owner ?2 holds such a message: for a leased one these are the two
-- before the present attempt. Each look-up goes by the primary key.
SELECT
    (SELECT json_group_array(tried.value ->> 0)
     FROM jsonb_each(?1) AS tried
     WHERE EXISTS (
        SELECT 1 FROM mailslot_outcome AS o
        WHERE o.seq = tried.value ->> 0 AND o.generation = tried.value ->> 1
          AND o.attempt = tried.value ->> 2 AND o.kind = 2
     ) AND EXISTS (
        SELECT 1 FROM mailslot_outcome AS o
        WHERE o.seq = tried.value ->> 0 AND o.generation = tried.value ->> 1
          AND o.attempt = (tried.value ->> 2) - 1 AND o.kind = 2
     )),
    EXISTS (
        SELECT 1
        FROM mailslot_lease AS l
        CROSS JOIN mailslot_lease_member AS b ON b.lease = l.generation
        CROSS JOIN mailslot_outcome AS last
            ON last.seq = b.seq AND last.generation = b.generation AND last.attempt = b.attempt - 1 AND last.kind = 2
        CROSS JOIN mailslot_outcome AS before
            ON before.seq = b.seq AND before.generation = b.generation AND before.attempt = b.attempt - 2
            AND before.kind = 2
        WHERE l.owner = ?2
    )
