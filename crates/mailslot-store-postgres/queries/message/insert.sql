-- The envelopes of a batch. $1 time; arrays: $2 seq, $3 id, $4 id supplied, $5 lane, $6 priority, $7 key policy,
-- $8 content type, $9 tenant, $10 session, $11 idempotency key, $12 traceparent, $13 tracestate, $14 correlation,
-- $15 causation, $16 headers, $17 payload.
INSERT INTO mailslot.message (
    seq, accepted_at, id, id_supplied, lane, priority, key_policy, content_type, tenant, session, idempotency_key,
    traceparent, tracestate, correlation, causation, headers, payload
)
SELECT
    seq, $1::bigint, id, id_supplied <> 0, lane, priority, key_policy, content_type, tenant, session, idempotency_key,
    traceparent, tracestate, correlation, causation, headers, payload
FROM unnest(
    $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::bytea[]
) AS u(
    seq, id, id_supplied, lane, priority, key_policy, content_type, tenant, session, idempotency_key, traceparent,
    tracestate, correlation, causation, headers, payload
)
