-- Frees keys that their message still holds: one that was freed before may belong to another message by now.
-- ?1: JSON array of seqs; ?2: the keys, 32 bytes each.
DELETE FROM mailslot_ledger
WHERE key IN (
    SELECT ledger.key FROM json_each(?1) AS freed
    CROSS JOIN mailslot_ledger AS ledger
        ON ledger.key = substr(?2, 1 + 32 * freed.key, 32) AND ledger.seq = freed.value
)
