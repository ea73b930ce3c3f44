-- $1 time; arrays: $2 key, $3 seq, $4 fingerprint, $5 kind. In the order of the keys, so that two batches with the same
-- keys cannot wait for each other. Fewer rows than keys: another accept was faster.
INSERT INTO mailslot.ledger (key, seq, recorded_at, fingerprint, kind)
SELECT key, seq, $1::bigint, fingerprint, kind
FROM unnest($2::bytea[], $3::bigint[], $4::bytea[], $5::bigint[]) AS u(key, seq, fingerprint, kind)
ORDER BY key
ON CONFLICT (key) DO NOTHING
