-- For a role that may only accept: `GRANT mailslot_accept TO your_service;`
GRANT USAGE ON SCHEMA mailslot TO mailslot_accept;
GRANT SELECT ON mailslot.migration, mailslot.partition, mailslot.record TO mailslot_accept;
GRANT USAGE, SELECT ON SEQUENCE mailslot.message_seq TO mailslot_accept;
GRANT SELECT, INSERT ON mailslot.lane, mailslot.ledger, mailslot.parked TO mailslot_accept;
GRANT INSERT ON mailslot.message, mailslot.ready, mailslot.tally TO mailslot_accept;
-- A session is locked while a message joins it.
GRANT SELECT, INSERT, UPDATE, DELETE ON mailslot.session TO mailslot_accept;
