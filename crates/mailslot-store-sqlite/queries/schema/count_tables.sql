-- Whether the file holds anything, ours or not.
SELECT COUNT(*) FROM sqlite_master
