-- Locks the sessions whose head left, in one order for everybody, so that no accept adds to one that is handed on.
-- $1: their numbers.
SELECT id FROM mailslot.session WHERE id = ANY($1::bigint[]) ORDER BY endpoint, tenant, key FOR UPDATE
