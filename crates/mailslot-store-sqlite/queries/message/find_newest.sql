-- As find_oldest.sql, against acceptance order: one statement for both could not walk the key.
SELECT seq FROM mailslot_record
WHERE seq > ?14 AND seq < ?15
  AND (?1 IS NULL OR id IN (SELECT unhex(value) FROM json_each(?1)))
  AND (?2 IS NULL OR status IN (SELECT value FROM json_each(?2)))
  AND (?3 IS NULL OR endpoint = ?3)
  AND (?4 IS NULL OR (contract = ?4 AND version = ?5))
  AND (?6 IS NULL OR tenant = ?6)
  AND (?7 IS NULL OR session = ?7)
  AND (?8 IS NULL OR idempotency_key = ?8)
  AND (?9 IS NULL OR correlation = ?9)
  AND (?10 IS NULL OR causation = ?10)
  AND (?11 IS NULL OR reason = ?11)
  AND (?12 IS NULL OR accepted_at >= ?12)
  AND (?13 IS NULL OR accepted_at < ?13)
  AND (?17 = 0 OR cancel_requested = 0)
  AND (?19 IS NULL OR generation = ?19)
ORDER BY seq DESC LIMIT ?16
