-- Leases for people, oldest end first.
SELECT
    l.owner, l.label, l.generation, l.until,
    (SELECT COUNT(*) FROM mailslot_lease_member AS b WHERE b.lease = l.generation)
FROM mailslot_lease AS l
ORDER BY l.until, l.generation LIMIT ?1
