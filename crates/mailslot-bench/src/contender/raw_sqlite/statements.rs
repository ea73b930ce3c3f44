//! The tables and the prepared statements.

use crate::contender::RawMessage;
use crate::options::Durability;
use rusqlite::{Connection, Statement, params};
use std::path::Path;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS message (
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL, endpoint INTEGER NOT NULL, contract TEXT NOT NULL,
    version INTEGER NOT NULL, headers TEXT, accepted_at INTEGER NOT NULL, payload BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS ledger (
    key BLOB PRIMARY KEY, seq INTEGER NOT NULL, fingerprint BLOB NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ready (
    endpoint INTEGER NOT NULL, due_at INTEGER NOT NULL, seq INTEGER NOT NULL, attempt INTEGER NOT NULL,
    PRIMARY KEY (endpoint, due_at, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lease (
    id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, until INTEGER NOT NULL, seqs TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS outcome (
    seq INTEGER NOT NULL, attempt INTEGER NOT NULL, status INTEGER NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (seq, attempt)
) STRICT, WITHOUT ROWID;";

const ENDPOINT: i64 = 1;

/// How long a lease would hold, in microseconds.
const LEASE_US: i64 = 30_000_000;

/// Opens the file with the pragmas of our store.
pub(crate) fn open(path: &Path, durability: Durability) -> anyhow::Result<Connection> {
    let synchronous = if durability == Durability::Normal { "NORMAL" } else { "FULL" };
    let db = Connection::open(path)?;
    db.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 4096;
         PRAGMA cache_size = -65536; PRAGMA temp_store = memory; PRAGMA busy_timeout = 5000; {TABLES}"
    ))?;
    Ok(db)
}

/// A claimed message.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) seq: i64,
    pub(crate) payload: Vec<u8>,
}

/// Every statement, prepared once.
pub(crate) struct Statements<'db> {
    begin: Statement<'db>,
    commit: Statement<'db>,
    insert_message: Statement<'db>,
    insert_ledger: Statement<'db>,
    insert_ready: Statement<'db>,
    pick: Statement<'db>,
    read: Statement<'db>,
    delete_ready: Statement<'db>,
    insert_lease: Statement<'db>,
    delete_lease: Statement<'db>,
    insert_outcome: Statement<'db>,
    last_seq: i64,
    last_lease: i64,
}

impl<'db> Statements<'db> {
    pub(crate) fn prepare(db: &'db Connection) -> rusqlite::Result<Self> {
        let highest = |sql: &str| db.query_row(sql, [], |row| row.get(0));
        Ok(Self {
            begin: db.prepare("BEGIN IMMEDIATE")?,
            commit: db.prepare("COMMIT")?,
            insert_message: db.prepare(
                "INSERT INTO message (seq, id, endpoint, contract, version, headers, accepted_at, payload)
                 VALUES (?1, ?2, ?3, 'bench.work', 1, '{}', ?4, ?5)",
            )?,
            insert_ledger: db.prepare(
                "INSERT INTO ledger (key, seq, fingerprint, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?,
            insert_ready: db
                .prepare("INSERT INTO ready (endpoint, due_at, seq, attempt) VALUES (?1, ?2, ?3, 0)")?,
            pick: db.prepare(
                "SELECT due_at, seq FROM ready WHERE endpoint = ?1 AND due_at <= ?2 ORDER BY due_at, seq LIMIT ?3",
            )?,
            read: db.prepare("SELECT payload FROM message WHERE seq = ?1")?,
            delete_ready: db
                .prepare("DELETE FROM ready WHERE endpoint = ?1 AND due_at = ?2 AND seq = ?3")?,
            insert_lease: db.prepare("INSERT INTO lease (id, owner, until, seqs) VALUES (?1, 1, ?2, ?3)")?,
            delete_lease: db.prepare("DELETE FROM lease WHERE id = ?1")?,
            insert_outcome: db
                .prepare("INSERT INTO outcome (seq, attempt, status, at) VALUES (?1, 1, 2, ?2)")?,
            last_seq: highest("SELECT COALESCE(MAX(seq), 0) FROM message")?,
            last_lease: highest("SELECT COALESCE(MAX(id), 0) FROM lease")?,
        })
    }

    pub(crate) fn begin(&mut self) -> rusqlite::Result<()> {
        self.begin.execute([]).map(|_| ())
    }

    pub(crate) fn commit(&mut self) -> rusqlite::Result<()> {
        self.commit.execute([]).map(|_| ())
    }

    /// Stores messages; a known key is left alone.
    pub(crate) fn accept(&mut self, messages: &[RawMessage]) -> rusqlite::Result<()> {
        let now = now_us();
        for RawMessage { id, ledger, payload } in messages {
            self.last_seq += 1;
            let seq = self.last_seq;
            if let Some((key, fingerprint)) = ledger {
                let new = self.insert_ledger.execute(params![&key[..], seq, &fingerprint[..], now])?;
                if new == 0 {
                    continue;
                }
            }
            self.insert_message.execute(params![seq, &id.as_bytes()[..], ENDPOINT, now, payload])?;
            self.insert_ready.execute(params![ENDPOINT, now, seq])?;
        }
        Ok(())
    }

    /// Claims the oldest due messages under a new lease, whose number comes with them.
    pub(crate) fn claim(&mut self, limit: usize) -> rusqlite::Result<(i64, Vec<Claimed>)> {
        let now = now_us();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let due: Vec<(i64, i64)> = self
            .pick
            .query_map(params![ENDPOINT, now, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut claimed = Vec::with_capacity(due.len());
        for (due_at, seq) in due {
            self.delete_ready.execute(params![ENDPOINT, due_at, seq])?;
            let payload = self.read.query_row(params![seq], |row| row.get(0))?;
            claimed.push(Claimed { seq, payload });
        }
        if !claimed.is_empty() {
            self.last_lease += 1;
            let seqs: Vec<_> = claimed.iter().map(|claimed| claimed.seq).collect();
            let seqs = serde_json::to_string(&seqs).expect("numbers always have a JSON form");
            self.insert_lease.execute(params![self.last_lease, now + LEASE_US, seqs])?;
        }
        Ok((self.last_lease, claimed))
    }

    /// Completes messages.
    pub(crate) fn settle(&mut self, seqs: &[i64]) -> rusqlite::Result<()> {
        let now = now_us();
        for seq in seqs {
            self.insert_outcome.execute(params![seq, now])?;
        }
        Ok(())
    }

    /// Forgets a lease without open messages.
    pub(crate) fn end_lease(&mut self, lease: i64) -> rusqlite::Result<()> {
        self.delete_lease.execute(params![lease]).map(|_| ())
    }
}

fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}
