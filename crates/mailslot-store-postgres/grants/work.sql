-- For a role that may only work: `GRANT mailslot_work TO your_worker;`
GRANT USAGE ON SCHEMA mailslot TO mailslot_work;
GRANT SELECT ON mailslot.migration, mailslot.partition, mailslot.record, mailslot.message, mailslot.message_seq
    TO mailslot_work;
GRANT SELECT, INSERT ON mailslot.lane TO mailslot_work;
GRANT SELECT, INSERT, UPDATE, DELETE ON mailslot.ready, mailslot.lease, mailslot.session, mailslot.tally TO mailslot_work;
GRANT SELECT, INSERT, DELETE ON mailslot.suspended TO mailslot_work;
GRANT SELECT, INSERT, UPDATE, DELETE ON mailslot.kept_handoff TO mailslot_work;
GRANT SELECT, DELETE ON mailslot.parked, mailslot.ledger TO mailslot_work;
-- For subscribers.
GRANT SELECT, INSERT, UPDATE, DELETE ON mailslot.delivery TO mailslot_work;
-- An outcome that comes twice is written once.
GRANT SELECT, INSERT, UPDATE ON mailslot.outcome TO mailslot_work;
