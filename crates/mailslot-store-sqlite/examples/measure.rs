//! Measures the store on this machine's disk: `cargo run --release -p mailslot-store-sqlite --example measure`.

#![expect(clippy::print_stdout, reason = "a report is for people")]

use mailslot_core::store::{AppendGroup, Exchange, LaneRequest, LeaseRequest};
use mailslot_core::{
    ContentType, Contract, Disposition, EndpointName, Idempotency, IdempotencyKey, InboxStore as _, Metadata,
    NewMessage, Owner, Payload, Settlement,
};
use mailslot_store_sqlite::SqliteStore;
use std::time::{Duration, Instant};

const ROUNDS: usize = 60;

fn message(keyed: bool) -> NewMessage {
    let contract = Contract::new("bench.order", 1).expect("a plain name");
    let payload = Payload::new(vec![b'x'; 256], ContentType::default()).expect("within the bound");
    let idempotency = if keyed {
        let key = IdempotencyKey::new(mailslot_core::MessageId::generate().to_string()).expect("a plain key");
        Idempotency::keyed(key)
    } else {
        Idempotency::None
    };
    NewMessage::new(contract, payload, Metadata { idempotency, ..Metadata::default() })
}

fn groups(count: usize, keyed: bool) -> Vec<AppendGroup> {
    (0..count).map(|_| AppendGroup::from(message(keyed))).collect()
}

/// Time on the wall and time on the processors, of every thread.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    wall: Duration,
    processor: Duration,
}

/// Measures one piece of work.
struct Watch {
    started: Instant,
    processor: Duration,
}

impl Watch {
    fn start() -> Self {
        Self { started: Instant::now(), processor: processor() }
    }

    fn add_to(&self, spent: &mut Spent) {
        spent.wall += self.started.elapsed();
        spent.processor += processor().saturating_sub(self.processor);
    }
}

/// The time that every thread of this process spent on a processor; zero where the system does not tell.
fn processor() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let spent = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

fn report(what: &str, spent: Spent, messages: usize) {
    #[expect(clippy::cast_precision_loss, reason = "far below the bound of the mantissa")]
    let each = |time: Duration| time.as_secs_f64() * 1e6 / messages as f64;
    let (wall, processor) = (each(spent.wall), each(spent.processor));
    println!("{what:<24} {wall:>9.1} us a message, of which on a processor {processor:>8.1} us");
}

async fn append(store: &SqliteStore, count: usize, keyed: bool) {
    let mut total = Spent::default();
    for _ in 0..ROUNDS {
        let groups = groups(count, keyed);
        let watch = Watch::start();
        store.append(groups).await.expect("the disk has room");
        watch.add_to(&mut total);
    }
    let keyed = if keyed { "keyed" } else { "plain" };
    report(&format!("append {count} {keyed}"), total, ROUNDS * count);
}

async fn exchange(store: &SqliteStore, batch: usize) {
    let owner = Owner::new("measure").expect("a plain label");
    let contract = Contract::new("bench.order", 1).expect("a plain name");
    let lanes = vec![LaneRequest { endpoint: EndpointName::default(), contract, attempts_max: 5 }];
    let (mut settlements, mut total, mut rounds) = (Vec::new(), Spent::default(), 0);
    for _ in 0..ROUNDS {
        let lease = LeaseRequest {
            owner: owner.clone(),
            lanes: lanes.clone(),
            limit: batch,
            duration: Duration::from_secs(60),
            tenant: None,
            due_until: None,
        };
        let settled = settlements.len();
        let exchange = Exchange { settlements: std::mem::take(&mut settlements), lease: Some(lease) };
        let watch = Watch::start();
        let exchanged = store.exchange(exchange).await.expect("the disk has room");
        if settled == batch && exchanged.leased.len() == batch {
            watch.add_to(&mut total);
            rounds += 1;
        }
        let settle = |leased: mailslot_core::store::Leased| Settlement {
            lease: leased.lease,
            seq: leased.envelope.seq,
            attempt: leased.attempt,
            disposition: Disposition::Complete,
            error: None,
        };
        settlements = exchanged.leased.into_iter().map(settle).collect();
    }
    if rounds > 0 {
        report(&format!("exchange {batch} + {batch}"), total, rounds * batch);
    }
}

#[tokio::main]
async fn main() {
    let directory = tempfile::tempdir_in(".").expect("the working directory can be written");
    let path = directory.path().join("inbox.db");
    let store = SqliteStore::connect(path.to_str().expect("a plain path")).await.expect("a fresh file");
    for keyed in [false, true] {
        append(&store, 1, keyed).await;
        append(&store, 256, keyed).await;
    }
    exchange(&store, 200).await;
    append(&store, 256, true).await;
    exchange(&store, 1).await;
}
