-- Answers with the mode that it is in then.
PRAGMA journal_mode = WAL
