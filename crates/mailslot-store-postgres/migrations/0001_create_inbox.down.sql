-- Takes back 0001_create_inbox.up.sql, with everything that is stored.
DROP VIEW mailslot.record;
DROP TABLE mailslot.redrive, mailslot.tally, mailslot.kept_handoff, mailslot.suspended, mailslot.parked, mailslot.session, mailslot.lease,
    mailslot.ready, mailslot.delivery, mailslot.ledger, mailslot.partition, mailslot.outcome, mailslot.message, mailslot.lane;
DROP SEQUENCE mailslot.message_seq;
