-- Marks the file as ours: "Mslt" in ASCII.
PRAGMA application_id = 1299410036
