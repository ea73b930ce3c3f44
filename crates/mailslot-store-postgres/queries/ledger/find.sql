-- What is known of the keys $1: their places in the array, and the first receipt with the present status.
SELECT
    wanted.place, ledger.fingerprint,
    r.id, r.accepted_at, r.tenant, r.traceparent, r.tracestate, r.correlation, r.causation, r.endpoint, r.contract,
    r.version, r.status
FROM unnest($1::bytea[]) WITH ORDINALITY AS wanted(key, place)
JOIN mailslot.ledger AS ledger USING (key)
JOIN mailslot.record AS r ON r.seq = ledger.seq
