//! The tables, and connections that find them.

use crate::contender::Schema;
use crate::server::connect;
use tokio_postgres::Client;

const TABLES: &str = "
CREATE SEQUENCE IF NOT EXISTS seq CACHE 1;
CREATE TABLE IF NOT EXISTS message (
    seq bigint PRIMARY KEY, id uuid NOT NULL, endpoint int NOT NULL, contract text NOT NULL, version int NOT NULL,
    payload bytea NOT NULL, headers text, accepted_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS ledger (
    key bytea PRIMARY KEY, seq bigint NOT NULL, at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS ready (
    endpoint int NOT NULL, due_at timestamptz NOT NULL, seq bigint NOT NULL, attempt int NOT NULL DEFAULT 0,
    PRIMARY KEY (endpoint, due_at, seq)
);
CREATE TABLE IF NOT EXISTS lease (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner bigint, until timestamptz, seqs bigint[], attempts int[]
);
CREATE TABLE IF NOT EXISTS outcome (
    seq bigint NOT NULL, attempt int NOT NULL, status smallint NOT NULL, at timestamptz NOT NULL DEFAULT now(),
    error text, PRIMARY KEY (seq, attempt)
);
-- For who inserts one message at a time: a single table, as it is written first.
CREATE TABLE IF NOT EXISTS inbox (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL, tenant text NOT NULL, key text,
    fingerprint bytea, contract text NOT NULL, version int NOT NULL, payload bytea NOT NULL, headers text,
    state smallint NOT NULL DEFAULT 0, attempts int NOT NULL DEFAULT 0, due_at timestamptz NOT NULL DEFAULT now(),
    accepted_at timestamptz NOT NULL DEFAULT now(), UNIQUE (tenant, key)
);
CREATE INDEX IF NOT EXISTS inbox_due ON inbox (due_at, seq) WHERE state = 0;";

/// For claims: every statement goes by a key, and statistics of tables that turn over every second would only mislead
/// the planner.
const PINS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
SET enable_mergejoin = off; SET jit = off;";

/// Makes the tables, unless another process did.
pub(crate) async fn create(schema: &Schema) -> anyhow::Result<()> {
    let client = open(schema).await?;
    Ok(client.batch_execute(&format!("SET client_min_messages = warning; {TABLES}")).await?)
}

/// Connects to the tables.
pub(super) async fn open(schema: &Schema) -> anyhow::Result<Client> {
    let client = connect(&schema.url).await?;
    client.batch_execute(&format!("SET search_path TO {}", schema.name)).await?;
    Ok(client)
}

/// Connects to the tables with plans that go by key.
pub(super) async fn open_pinned(schema: &Schema) -> anyhow::Result<Client> {
    let client = open(schema).await?;
    client.batch_execute(PINS).await?;
    Ok(client)
}
