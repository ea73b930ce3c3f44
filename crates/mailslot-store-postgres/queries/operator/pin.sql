-- For a transaction whose statements go by keys: forbids the plans that are right only for the size that a table had
-- when they were made.
SELECT
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true)
