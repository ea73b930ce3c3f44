-- $1: the lower bound of a partition whose tables are dropped.
DELETE FROM mailslot.partition WHERE lower = $1::bigint
