-- Every message of an id: several where tenants chose the same.
SELECT seq FROM mailslot_message WHERE id = ?1 ORDER BY seq
