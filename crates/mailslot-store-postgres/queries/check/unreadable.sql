-- Every value is what this version can read: names are not blank, times are of the calendar (years -9999 to 9999), and
-- headers are a JSON object of texts. Answers how many there are, and the first ten.
WITH bad AS (
    SELECT m.seq AS what FROM mailslot.message AS m
    WHERE btrim(m.content_type) = '' OR btrim(m.tenant) = '' OR btrim(m.session) = '' OR btrim(m.idempotency_key) = ''
       OR m.accepted_at NOT BETWEEN -377705023201000000 AND 253402207200999999
       OR m.headers !~ '^\s*\{\s*("([^"\\]|\\.)*"\s*:\s*"([^"\\]|\\.)*"\s*(,\s*"([^"\\]|\\.)*"\s*:\s*"([^"\\]|\\.)*"\s*)*)?\}\s*$'
       OR NOT EXISTS (SELECT 1 FROM mailslot.lane AS lane WHERE lane.id = m.lane)
)
SELECT count(*), (SELECT string_agg(what::text, ', ') FROM (SELECT what FROM bad ORDER BY what LIMIT 10) AS first) FROM bad
