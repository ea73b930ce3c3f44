-- Which program the file belongs to.
PRAGMA application_id
