-- Removes the inbox with all its messages.
DROP VIEW mailslot_record;
DROP TABLE mailslot_redrive;
DROP TABLE mailslot_tally;
DROP TABLE mailslot_outcome;
DROP TABLE mailslot_kept_handoff;
DROP TABLE mailslot_suspended;
DROP TABLE mailslot_parked;
DROP TABLE mailslot_session;
DROP TABLE mailslot_lease_member;
DROP TABLE mailslot_lease;
DROP TABLE mailslot_ready;
DROP TABLE mailslot_delivery;
DROP TABLE mailslot_ledger;
DROP TABLE mailslot_message;
DROP TABLE mailslot_lane;
DROP TABLE mailslot_sequence;
