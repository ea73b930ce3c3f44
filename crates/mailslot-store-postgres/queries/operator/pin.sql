-- For a transaction whose statements go by keys: forbids the plans that are right only for the size that a table had
-- when they were made, and compiling them, which takes longer than they do. $1: 'off', or 'on' for a statement that
-- looks for times in a BRIN index.
SELECT
    set_config('enable_bitmapscan', $1::text, true), set_config('enable_seqscan', 'off', true),
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true)
