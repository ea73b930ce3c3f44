-- Whether a message of the partition from $1 on and before $2 ended later than until when those may go that completed
-- ($3), were skipped ($4) or cancelled ($5), and whether one ended more than $6 later. By the BRIN index of times, if it
-- is planned with the bounds.
SELECT
    EXISTS (
        SELECT 1 FROM mailslot.outcome AS o
        WHERE o.seq >= $1::bigint AND o.seq < $2::bigint AND o.at >= LEAST($3::bigint, $4::bigint, $5::bigint)
          AND o.at >= CASE o.kind WHEN 4 THEN $3 WHEN 5 THEN $4 WHEN 7 THEN $5 END
    ),
    EXISTS (
        SELECT 1 FROM mailslot.outcome AS o
        WHERE o.seq >= $1 AND o.seq < $2 AND o.at >= LEAST($3, $4, $5) + $6::bigint
          AND o.at >= CASE o.kind WHEN 4 THEN $3 WHEN 5 THEN $4 WHEN 7 THEN $5 END + $6
    )
