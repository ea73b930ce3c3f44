-- What the ledger keys of the messages $1 are made of.
SELECT m.seq, m.id, m.id_supplied, m.tenant, m.idempotency_key
FROM unnest($1::bigint[]) AS wanted(seq) JOIN mailslot.message AS m USING (seq)
