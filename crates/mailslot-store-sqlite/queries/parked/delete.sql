-- ?1: JSON array of seqs.
DELETE FROM mailslot_parked
WHERE (session, seq) IN (
    SELECT p.session, p.seq FROM json_each(?1) AS gone CROSS JOIN mailslot_parked AS p ON p.seq = gone.value
)
