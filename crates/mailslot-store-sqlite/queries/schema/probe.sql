-- Fails within a transaction: see its use.
BEGIN
