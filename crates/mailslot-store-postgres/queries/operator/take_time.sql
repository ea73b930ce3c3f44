-- For a transaction that reads everything there is: its statements may take $1 milliseconds.
SELECT set_config('statement_timeout', $1::text, true), set_config('jit', 'off', true)
