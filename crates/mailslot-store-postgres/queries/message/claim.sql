-- The envelopes of the messages $1.
SELECT
    m.seq, m.id, m.priority, m.accepted_at, m.content_type, m.payload, m.tenant, m.session, m.idempotency_key,
    m.traceparent, m.tracestate, m.correlation, m.causation, m.headers
FROM unnest($1::bigint[]) AS wanted(seq) JOIN mailslot.message AS m USING (seq)
