-- What is known of ?1 keys: a JSON array with one element for each, only for its places; ?2: the keys, 32 bytes each.
-- The first receipt with the present status comes along.
SELECT
    wanted.key, ledger.fingerprint,
    r.id, r.accepted_at, r.tenant, r.traceparent, r.tracestate, r.correlation, r.causation, r.endpoint, r.contract,
    r.version, r.status
FROM json_each(?1) AS wanted
CROSS JOIN mailslot_ledger AS ledger ON ledger.key = substr(?2, 1 + 32 * wanted.key, 32)
CROSS JOIN mailslot_record AS r ON r.seq = ledger.seq
