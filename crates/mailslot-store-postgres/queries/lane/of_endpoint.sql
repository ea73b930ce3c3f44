-- The numbers of all lanes of the endpoint $1.
SELECT id FROM mailslot.lane WHERE endpoint = $1::text
