-- Those whose message is suspended, and those that were kept for long enough. ?1 now, ?2 limit.
SELECT k.id, k.error FROM mailslot_kept_handoff AS k
WHERE k.until <= ?1 OR EXISTS (
    SELECT 1 FROM mailslot_message AS m CROSS JOIN mailslot_suspended AS s ON s.seq = m.seq WHERE m.id = k.id
)
ORDER BY k.id LIMIT ?2
