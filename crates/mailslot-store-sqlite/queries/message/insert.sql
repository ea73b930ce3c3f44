-- Inserts a batch in one statement: an array costs a third of what a statement for each row costs.
-- ?1: JSON array of rows; ?2: the first seq; ?3: ids, 16 bytes each; ?4: payloads, one after the other, because JSON
-- cannot carry bytes; ?5: now. `jsonb_each` instead of `json_each`: it hands over each row in binary, so that fifteen
-- look-ups in it do not parse it fifteen times (3.4 us a row instead of 5.7).
INSERT INTO mailslot_message (
    seq, id, id_supplied, lane, priority, accepted_at, content_type, tenant, session, idempotency_key, key_policy,
    traceparent, tracestate, correlation, causation, headers, payload
)
SELECT
    ?2 + key, substr(?3, 1 + 16 * key, 16), value ->> 0, value ->> 1, value ->> 2, ?5, value ->> 3, value ->> 4,
    value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12,
    -- No bytes of no bytes is NULL to SQLite.
    COALESCE(substr(?4, value ->> 13, value ->> 14), x'')
FROM jsonb_each(?1)
