-- Lets all statements of the transaction see the same state.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY
