-- Differs from the last answer on the same connection if another connection committed since.
PRAGMA data_version
