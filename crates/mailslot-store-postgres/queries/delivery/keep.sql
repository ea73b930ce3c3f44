-- Messages go. $1: seqs. A delivery whose message was handled stays known, from its end on.
UPDATE mailslot.delivery AS d SET seq = NULL, recorded_at = r.ended_at
FROM mailslot.record AS r
WHERE d.seq = ANY ($1::bigint[]) AND r.seq = d.seq AND r.status = 'completed'
