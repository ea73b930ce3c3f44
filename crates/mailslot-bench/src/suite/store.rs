//! The store's trait without the engine: what is left of a difference is the engine's. One caller; only the calls are
//! timed, not the making of messages.

use super::{Place, Subject, interleave};
use crate::contender::{Counted, Kind, MemoryTables, RawMessage, Statements, open_store, open_tables};
use crate::measure::{Sample, cpu_time};
use crate::message::Work;
use crate::options::{Durability, Options, Span, Suite};
use crate::report::{Better, Report};
use mailslot::store::{AppendGroup, Exchange, LaneRequest, LeaseRequest, Leased};
use mailslot::{
    Contract, Disposition, EndpointName, Idempotency, IdempotencyKey, InboxStore, KeyPolicy, Metadata,
    NewMessage, OnConflict, Owner, Settlement,
};
use std::time::{Duration, Instant};
use uuid::Uuid;

#[derive(Debug, Clone, Copy)]
enum Case {
    /// Groups of one message, this many in one call.
    Append(usize),
    /// Settles this many and claims this many, in one call.
    Exchange(usize),
}

impl Case {
    fn name(self) -> String {
        match self {
            Self::Append(groups) => format!("append {groups}, keyed"),
            Self::Exchange(messages) => format!("settle and lease {messages}"),
        }
    }
}

const CASES: [Case; 3] = [Case::Append(1), Case::Append(256), Case::Exchange(200)];
const KINDS: [Kind; 2] = [Kind::Mailslot, Kind::Raw];

pub(super) async fn run(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let samples = options.stores().len() * CASES.len() * KINDS.len() * options.repetitions();
    let span = options.span(Suite::Store, samples);
    for durability in options.stores() {
        for case in CASES {
            let subject =
                Subject { suite: Suite::Store, durability, case: case.name(), better: Better::Rate };
            let sample = async |kind| {
                let place = Place::new(options)?;
                let mut bare = Bare::open(kind, &place, durability).await?;
                bare.sample(case, span).await
            };
            interleave(options, report, subject, &KINDS, sample).await?;
        }
    }
    Ok(())
}

/// A store to call directly, ours or raw, with what it leased last.
enum Bare {
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
}

impl Bare {
    async fn open(kind: Kind, place: &Place, durability: Durability) -> anyhow::Result<Self> {
        let path = place.setup(durability).path;
        Ok(match (kind, durability) {
            (Kind::Mailslot, _) => {
                let store = Box::new(Counted::new(open_store(durability, &path).await?));
                Self::Ours { store, owner: Owner::new("bench")?, held: Vec::new() }
            }
            (_, Durability::Memory) => Self::Memory { tables: Box::default(), held: Vec::new() },
            _ => Self::Sqlite { db: open_tables(&path, durability)?, held: Vec::new(), lease: 0 },
        })
    }

    async fn sample(&mut self, case: Case, span: Span) -> anyhow::Result<Sample> {
        let (mut calls, mut messages, mut busy, mut cpu) = (0, 0, Duration::ZERO, Duration::ZERO);
        let begun = Instant::now();
        // One call at least, however busy the machine is.
        while begun.elapsed() < span.warm_up + span.measured || calls == 0 {
            let warm = begun.elapsed() >= span.warm_up;
            let Timed { done, took, cost } = match case {
                Case::Append(groups) => self.append(groups).await?,
                Case::Exchange(limit) => {
                    // Something to lease, made outside the time.
                    self.append(limit).await?;
                    self.exchange(limit).await?
                }
            };
            if warm {
                calls += 1;
                messages += done;
                busy += took;
                cpu += cost;
            }
        }
        Ok(Sample::of(messages, calls, busy, cpu))
    }

    async fn append(&mut self, groups: usize) -> anyhow::Result<Timed> {
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
        }
    }

    /// Settles what is held and leases what is next.
    async fn exchange(&mut self, limit: usize) -> anyhow::Result<Timed> {
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
        }
    }
}

/// One timed call.
struct Timed {
    done: u64,
    took: Duration,
    cost: Duration,
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
    let key = IdempotencyKey::new(Uuid::new_v4().to_string())?;
    let idempotency =
        Idempotency::Keyed { key, policy: KeyPolicy::default(), on_conflict: OnConflict::default() };
    Ok(NewMessage::encode(&Work::new(), Metadata { idempotency, ..Metadata::default() })?)
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
