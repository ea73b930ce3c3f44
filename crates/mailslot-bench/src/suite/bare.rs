//! A store to call directly, ours or raw: one caller, without the engine. Only the calls are timed, not the making of
//! messages.

use super::Place;
use crate::contender::{
    Claimed, Claimer, Flusher, Kind, MemoryTables, RawMessage, Setup, Statements, create_tables, open_store,
    open_tables,
};
use crate::options::Durability;
use jiff::SignedDuration;
use mailslot::store::{AppendGroup, Exchange, LaneRequest, LeaseRequest, Leased};
use mailslot::{
    Contract, Disposition, EndpointName, Idempotency, IdempotencyKey, InboxStore, KeyPolicy, Metadata,
    NewMessage, OnConflict, Owner, Settlement, Visibility,
};
use mailslot_load::{Counted, Latencies, Reading, Sample, Work, cpu_time, latencies, record};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A store with what it leased last.
pub(super) enum Bare {
    Ours {
        store: Box<Counted>,
        owner: Owner,
        held: Vec<Leased>,
    },
    Sqlite {
        db: rusqlite::Connection,
        held: Vec<i64>,
        lease: i64,
    },
    /// Without its lock: there is one caller.
    Memory {
        tables: Box<MemoryTables>,
        held: Vec<i64>,
    },
    Postgres {
        flusher: Box<Flusher>,
        claimer: Box<Claimer>,
        held: Claimed,
    },
}

impl Bare {
    /// Opens one whose claims take at most `limit` messages.
    pub(super) async fn open(kind: Kind, place: &Place, limit: usize) -> anyhow::Result<Self> {
        let setup = place.setup();
        Ok(match (kind, setup.durability) {
            (Kind::Mailslot, _) => {
                let store = Box::new(Counted::new(open_store(&setup).await?));
                Self::Ours { store, owner: Owner::new("bench")?, held: Vec::new() }
            }
            (_, Durability::Memory) => Self::Memory { tables: Box::default(), held: Vec::new() },
            (_, Durability::Postgres) => Self::open_postgres(&setup, limit).await?,
            (_, durability) => {
                let db = open_tables(setup.place.file()?, durability)?;
                Self::Sqlite { db, held: Vec::new(), lease: 0 }
            }
        })
    }

    async fn open_postgres(setup: &Setup, limit: usize) -> anyhow::Result<Self> {
        let schema = setup.place.schema()?;
        create_tables(schema).await?;
        let flusher = Box::new(Flusher::open(schema).await?);
        let claimer = Box::new(Claimer::open(schema, limit).await?);
        Ok(Self::Postgres { flusher, claimer, held: Claimed::default() })
    }

    /// Stores keyed messages, each as a group of its own.
    pub(super) async fn append(&mut self, groups: usize) -> anyhow::Result<Timed> {
        match self {
            Self::Ours { store, .. } => {
                let batch: Vec<AppendGroup> =
                    (0..groups).map(|_| Ok(new_message()?.into())).collect::<anyhow::Result<_>>()?;
                let clock = Clock::start();
                store.append(batch).await?;
                Ok(clock.stop(groups))
            }
            Self::Sqlite { db, .. } => {
                let batch: Vec<_> = (0..groups).map(|_| RawMessage::new(true)).collect();
                let mut statements = Statements::prepare(db)?;
                let clock = Clock::start();
                statements.begin()?;
                statements.accept(&batch)?;
                statements.commit()?;
                Ok(clock.stop(groups))
            }
            Self::Memory { tables, .. } => {
                let batch: Vec<_> = (0..groups).map(|_| RawMessage::new(true)).collect();
                let clock = Clock::start();
                for message in batch {
                    tables.accept(message);
                }
                Ok(clock.stop(groups))
            }
            Self::Postgres { flusher, .. } => {
                let batch: Vec<_> = (0..groups).map(|_| RawMessage::new(true)).collect();
                let clock = Clock::start();
                flusher.store(batch).await?;
                Ok(clock.stop(groups))
            }
        }
    }

    /// Settles what is held and leases what is next.
    pub(super) async fn exchange(&mut self, limit: usize) -> anyhow::Result<Timed> {
        match self {
            Self::Ours { store, owner, held } => {
                let exchange = Exchange {
                    settlements: held.drain(..).map(completed).collect(),
                    lease: Some(claim(owner, limit)),
                };
                let clock = Clock::start();
                *held = store.exchange(exchange).await?.leased;
                Ok(clock.stop(held.len()))
            }
            Self::Sqlite { db, held, lease } => {
                let mut statements = Statements::prepare(db)?;
                let clock = Clock::start();
                statements.begin()?;
                statements.settle(held)?;
                statements.end_lease(*lease)?;
                let (new_lease, claimed) = statements.claim(limit)?;
                statements.commit()?;
                *lease = new_lease;
                *held = claimed.into_iter().map(|claimed| claimed.seq).collect();
                Ok(clock.stop(held.len()))
            }
            Self::Memory { tables, held } => {
                let clock = Clock::start();
                tables.settle(held);
                let claimed = tables.claim(limit);
                *held = claimed.iter().map(|(seq, _)| *seq).collect();
                Ok(clock.stop(held.len()))
            }
            Self::Postgres { claimer, held, .. } => {
                let clock = Clock::start();
                if !held.seqs.is_empty() {
                    claimer.settle(held).await?;
                }
                *held = claimer.claim().await?;
                Ok(clock.stop(held.seqs.len()))
            }
        }
    }

    /// Lets messages pass, `limit` at a time, while `go_on` says so of how many passed: appends as many as the next
    /// exchange takes. Only the exchanges are timed.
    pub(super) async fn pass(
        &mut self,
        limit: usize,
        mut go_on: impl FnMut(u64) -> bool,
    ) -> anyhow::Result<Passed> {
        let mut passed = Passed::new();
        while go_on(passed.messages) {
            self.append(limit).await?;
            passed.add(self.exchange(limit).await?);
        }
        Ok(passed)
    }

    /// Appends many messages of this kind, in batches.
    pub(super) async fn fill(&mut self, messages: usize, what: Fill) -> anyhow::Result<()> {
        for begin in (0..messages).step_by(FILL) {
            let batch = FILL.min(messages - begin);
            match (&mut *self, what) {
                (Self::Ours { store, .. }, Fill::Later) => {
                    let group = || Ok(later()?.into());
                    let groups = (0..batch).map(|_| group()).collect::<anyhow::Result<_>>()?;
                    store.append(groups).await?;
                }
                (bare, _) => {
                    bare.append(batch).await?;
                }
            }
        }
        Ok(())
    }
}

/// Messages in one call while a store is filled.
const FILL: usize = 1_000;

/// What a store is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// What is due at once.
    Due,
    /// What is due in a year; the raw reference has no such thing.
    Later,
}

/// What passed, and how long the calls took.
pub(super) struct Passed {
    messages: u64,
    busy: Duration,
    cpu: Duration,
    calls: Latencies,
}

impl Passed {
    fn new() -> Self {
        Self { messages: 0, busy: Duration::ZERO, cpu: Duration::ZERO, calls: latencies() }
    }

    fn add(&mut self, timed: Timed) {
        self.messages += timed.done;
        self.busy += timed.took;
        self.cpu += timed.cost;
        record(&mut self.calls, timed.took);
    }

    pub(super) fn sample(self) -> Sample {
        let reading = |cpu| Reading { cpu, ..Reading::default() };
        let sample = Sample::of(self.messages, self.busy, &reading(Duration::ZERO), &reading(self.cpu));
        Sample { calls: Some(self.calls), ..sample }
    }
}

/// One timed call.
pub(super) struct Timed {
    pub(super) done: u64,
    pub(super) took: Duration,
    pub(super) cost: Duration,
}

struct Clock {
    since: Instant,
    cpu: Duration,
}

impl Clock {
    fn start() -> Self {
        Self { cpu: cpu_time(), since: Instant::now() }
    }

    fn stop(self, done: usize) -> Timed {
        let took = self.since.elapsed();
        Timed { done: done as u64, took, cost: cpu_time().saturating_sub(self.cpu) }
    }
}

fn new_message() -> anyhow::Result<NewMessage> {
    encode(Metadata::default())
}

fn later() -> anyhow::Result<NewMessage> {
    let visibility = Visibility::After(SignedDuration::from_hours(24 * 365));
    encode(Metadata { visibility, ..Metadata::default() })
}

fn encode(metadata: Metadata) -> anyhow::Result<NewMessage> {
    let key = IdempotencyKey::new(Uuid::new_v4().to_string())?;
    let idempotency =
        Idempotency::Keyed { key, policy: KeyPolicy::default(), on_conflict: OnConflict::default() };
    Ok(NewMessage::encode(&Work::now(), Metadata { idempotency, ..metadata })?)
}

fn completed(leased: Leased) -> Settlement {
    Settlement {
        lease: leased.lease,
        seq: leased.envelope.seq,
        attempt: leased.attempt,
        disposition: Disposition::Complete,
        error: None,
    }
}

fn claim(owner: &Owner, limit: usize) -> LeaseRequest {
    let lane =
        LaneRequest { endpoint: EndpointName::default(), contract: Contract::of::<Work>(), attempts_max: 5 };
    LeaseRequest {
        owner: owner.clone(),
        lanes: vec![lane],
        limit,
        duration: Duration::from_secs(30),
        tenant: None,
        due_until: None,
    }
}
