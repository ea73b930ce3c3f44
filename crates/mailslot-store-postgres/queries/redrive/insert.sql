-- $1 filter, $2 rate, $3 state, $4 how many match, $5 time, $6 the last place that it will look at.
INSERT INTO mailslot.redrive (filter, rate, state, total, requeued, created_at, updated_at, passed, last)
VALUES ($1::text, $2::bigint, $3::text, $4::bigint, 0, $5::bigint, $5, 0, $6::bigint)
RETURNING id
