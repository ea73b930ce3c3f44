-- Whole records of ?1, a JSON array of seqs.
SELECT
    seq, id, priority, accepted_at, content_type, payload, tenant, session, idempotency_key, traceparent, tracestate,
    correlation, causation, headers, endpoint, contract, version, status, generation, attempt, due_at, ended_at,
    leased_until, leased_by, cancel_requested, waits_behind, handoff, reason, error
FROM mailslot_record
WHERE seq IN (SELECT value FROM json_each(?1))
ORDER BY seq
