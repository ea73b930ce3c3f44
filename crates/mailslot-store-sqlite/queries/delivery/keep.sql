-- Messages go. ?1: JSON array of seqs. A delivery whose message was handled stays known, from its end on.
UPDATE mailslot_delivery SET seq = NULL, recorded_at = o.at
FROM mailslot_outcome AS o
WHERE mailslot_delivery.seq IN (SELECT value FROM json_each(?1))
  AND o.seq = mailslot_delivery.seq AND o.current = 1 AND o.kind = 4
