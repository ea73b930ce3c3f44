-- The first ?3 due messages of each lane and class: what the claim rule asks for. ?1: JSON array of [endpoint,
-- contract, version]; ?2: due until; ?4: tenant or NULL. Each lane and class is one range of the index, so other
-- endpoints, unknown contracts and far-future messages cost nothing. One row for each lane and class that has any.
WITH picked AS MATERIALIZED (
    SELECT
        wanted.key AS lane_index, lane.id AS lane, class.value AS priority,
        (SELECT json_group_array(json_array(seq, due_at, generation, attempt, session, key_policy))
         FROM (
            SELECT r.seq, r.due_at, r.generation, r.attempt, r.session, r.key_policy
            FROM mailslot_ready AS r
            WHERE r.lane = lane.id AND r.priority = class.value AND r.due_at <= ?2
              AND (?4 IS NULL OR ?4 = (SELECT m.tenant FROM mailslot_message AS m WHERE m.seq = r.seq))
            ORDER BY r.due_at, r.seq LIMIT ?3
         )) AS candidates
    FROM jsonb_each(?1) AS wanted
    CROSS JOIN mailslot_lane AS lane
        ON lane.endpoint = wanted.value ->> 0 AND lane.contract = wanted.value ->> 1
        AND lane.version = wanted.value ->> 2
    CROSS JOIN json_each('[0,1,2]') AS class
)
SELECT lane_index, lane, priority, candidates FROM picked WHERE candidates <> '[]'
