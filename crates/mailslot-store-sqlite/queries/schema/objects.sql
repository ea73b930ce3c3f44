-- Our tables, indexes and views as they were written, to compare with what the migrations write.
SELECT name, sql FROM sqlite_master
WHERE (tbl_name LIKE 'mailslot\_%' ESCAPE '\' OR name LIKE 'mailslot\_%' ESCAPE '\') AND sql IS NOT NULL
ORDER BY name
