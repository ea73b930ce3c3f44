-- ?1: JSON array of [seq, kind]; ?2: keys; ?3: fingerprints, 32 bytes each; ?4: now. A key that is taken is a defect
-- of the plan and fails, which keeps the first message's protection.
INSERT INTO mailslot_ledger (key, seq, fingerprint, kind, recorded_at)
SELECT substr(?2, 1 + 32 * key, 32), value ->> 0, substr(?3, 1 + 32 * key, 32), value ->> 1, ?4
FROM jsonb_each(?1)
