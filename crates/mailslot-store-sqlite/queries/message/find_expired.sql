-- Messages that ended as ?1 before ?2, the earliest end first: one range of the index, so retention costs what it
-- deletes, however much is kept.
SELECT o.seq
FROM mailslot_outcome AS o
CROSS JOIN mailslot_message AS m ON m.seq = o.seq
CROSS JOIN mailslot_lane AS lane ON lane.id = m.lane
WHERE o.current = 1 AND o.kind = ?1 AND o.at < ?2 AND (?3 IS NULL OR lane.endpoint = ?3)
ORDER BY o.at, o.seq LIMIT ?4
