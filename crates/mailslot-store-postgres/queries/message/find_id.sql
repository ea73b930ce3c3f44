-- Every message of the id $1: several where tenants chose the same.
SELECT seq FROM mailslot.message WHERE id = $1::uuid ORDER BY seq
