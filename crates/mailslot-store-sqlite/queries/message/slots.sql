-- Where the messages of ?1, a JSON array of seqs, stand: what is needed to move them. One row of JSON, because each
-- row that crosses from the driver's thread costs microseconds.
SELECT json_group_array(json_array(
    seq, lane, priority, generation, attempt, session_id, key_policy, status
))
FROM mailslot_record
WHERE seq IN (SELECT value FROM json_each(?1))
