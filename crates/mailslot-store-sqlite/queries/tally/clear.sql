-- Before a recount.
DELETE FROM mailslot_tally
