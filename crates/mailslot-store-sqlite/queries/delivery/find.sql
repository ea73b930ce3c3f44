-- What is known of ?1 deliveries: a JSON array with one element for each, only for its places; ?2: their keys, 32 bytes
-- each; ?3: now. A claim that is over counts for nothing, and neither does one whose message is not there.
SELECT wanted.key, d.recorded_at, d.owner IS NOT NULL, r.id, r.status
FROM json_each(?1) AS wanted
CROSS JOIN mailslot_delivery AS d ON d.key = substr(?2, 1 + 32 * wanted.key, 32)
LEFT JOIN mailslot_record AS r ON r.seq = d.seq
WHERE (d.owner IS NULL OR d.recorded_at > ?3) AND (d.seq IS NULL OR r.seq IS NOT NULL)
