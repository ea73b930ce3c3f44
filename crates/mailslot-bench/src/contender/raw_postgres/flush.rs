//! Storing many messages by one statement.

use super::tables;
use crate::contender::{RawMessage, Schema};
use anyhow::ensure;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

const KEYED: &str = "
WITH src AS (
    SELECT nextval('seq') AS seq, u.id, u.key, u.payload FROM unnest($1::uuid[], $2::bytea[], $3::bytea[]) AS u (id, key, payload)
), led AS (
    INSERT INTO ledger (key, seq) SELECT key, seq FROM src ON CONFLICT DO NOTHING RETURNING seq
), msg AS (
    INSERT INTO message (seq, id, endpoint, contract, version, payload, headers)
    SELECT src.seq, src.id, 1, 'bench.work', 1, src.payload, '{}' FROM src JOIN led USING (seq) RETURNING seq
), rdy AS (
    INSERT INTO ready (endpoint, due_at, seq) SELECT 1, now(), seq FROM msg
)
SELECT src.id, src.seq FROM src JOIN led USING (seq)";

const KEYLESS: &str = "
WITH src AS (
    SELECT nextval('seq') AS seq, u.id, u.payload FROM unnest($1::uuid[], $2::bytea[]) AS u (id, payload)
), msg AS (
    INSERT INTO message (seq, id, endpoint, contract, version, payload, headers)
    SELECT src.seq, src.id, 1, 'bench.work', 1, src.payload, '{}' FROM src RETURNING seq, id
), rdy AS (
    INSERT INTO ready (endpoint, due_at, seq) SELECT 1, now(), seq FROM msg
)
SELECT id, seq FROM msg";

/// A connection that stores.
pub(crate) struct Flusher {
    client: Client,
    keyed: Statement,
    keyless: Statement,
}

impl Flusher {
    pub(crate) async fn open(schema: &Schema) -> anyhow::Result<Self> {
        let client = tables::open(schema).await?;
        let (keyed, keyless) = (client.prepare(KEYED).await?, client.prepare(KEYLESS).await?);
        Ok(Self { client, keyed, keyless })
    }

    /// Stores messages that all have a key, or none has.
    pub(crate) async fn store(&self, mut messages: Vec<RawMessage>) -> anyhow::Result<()> {
        // In one order on all connections, so that two of them never wait for each other.
        messages.sort_unstable_by_key(|message| message.ledger.map(|(key, _)| key));
        let ids: Vec<Uuid> = messages.iter().map(|message| message.id).collect();
        let payloads: Vec<&[u8]> = messages.iter().map(|message| &message.payload[..]).collect();
        let keys: Vec<&[u8]> =
            messages.iter().filter_map(|message| message.ledger.as_ref()).map(|(key, _)| &key[..]).collect();
        let stored = if keys.is_empty() {
            self.client.query(&self.keyless, &[&ids, &payloads]).await?
        } else {
            self.client.query(&self.keyed, &[&ids, &keys, &payloads]).await?
        };
        ensure!(stored.len() == messages.len(), "{} of {} were stored", stored.len(), messages.len());
        Ok(())
    }
}
