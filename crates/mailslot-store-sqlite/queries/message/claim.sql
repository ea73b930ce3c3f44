-- The envelopes of ?1, a JSON array of seqs. CROSS JOIN keeps the array outside: each row is one look-up by key.
SELECT
    m.seq, m.id, m.priority, m.accepted_at, m.content_type, m.payload, m.tenant, m.session, m.idempotency_key,
    m.traceparent, m.tracestate, m.correlation, m.causation, m.headers
FROM json_each(?1) AS wanted
CROSS JOIN mailslot_message AS m ON m.seq = wanted.value
