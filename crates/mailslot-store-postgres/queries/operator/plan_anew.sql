-- For a transaction that looks at whole partitions: its statements are planned with their parameters each time, so that
-- the bounds of a partition are seen to select all of it.
SELECT
    set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true),
    set_config('jit', 'off', true)
