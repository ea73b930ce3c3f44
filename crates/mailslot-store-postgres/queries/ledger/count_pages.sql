-- How long the ledger is.
SELECT pg_relation_size('mailslot.ledger') / current_setting('block_size')::bigint
