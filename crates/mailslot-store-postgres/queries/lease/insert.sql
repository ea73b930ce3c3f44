-- A claimed batch. $1 owner, $2 label, $3 until; arrays, in claim order: $4 seq, $5 generation, $6 attempt, $7 session.
INSERT INTO mailslot.lease (owner, label, until, open, seqs, generations, attempts, sessions, settled)
SELECT $1::uuid, $2::text, $3::bigint, cardinality($4::bigint[]), $4, $5::bigint[]::integer[], $6::bigint[]::integer[],
    $7::bigint[], repeat('0', cardinality($4))::bit varying
RETURNING generation
