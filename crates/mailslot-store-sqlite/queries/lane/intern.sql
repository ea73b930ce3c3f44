-- ?1: JSON array of [endpoint, contract, version]. Lanes are never deleted, so ids may be remembered after commit.
INSERT INTO mailslot_lane (endpoint, contract, version)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(?1) WHERE true
ON CONFLICT (endpoint, contract, version) DO NOTHING
