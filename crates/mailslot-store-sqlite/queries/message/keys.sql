-- What the ledger keys of ?1, a JSON array of seqs, are made of.
SELECT m.seq, m.id, m.id_supplied, m.tenant, m.idempotency_key
FROM json_each(?1) AS wanted
CROSS JOIN mailslot_message AS m ON m.seq = wanted.value
