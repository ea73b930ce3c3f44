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

fn report(what: &str, total: Duration, messages: usize) {
    let micros = total.as_secs_f64() * 1e6;
    #[expect(clippy::cast_precision_loss, reason = "far below the bound of the mantissa")]
    let each = micros / messages as f64;
    println!("{what:<42} {each:>9.1} us a message");
}

async fn append(store: &SqliteStore, count: usize, keyed: bool) {
    let mut total = Duration::ZERO;
    for _ in 0..ROUNDS {
        let groups = groups(count, keyed);
        let started = Instant::now();
        store.append(groups).await.expect("the disk has room");
        total += started.elapsed();
    }
    let keyed = if keyed { "keyed" } else { "plain" };
    report(&format!("append {count} {keyed}"), total, ROUNDS * count);
}

async fn exchange(store: &SqliteStore, batch: usize) {
    let owner = Owner::new("measure").expect("a plain label");
    let contract = Contract::new("bench.order", 1).expect("a plain name");
    let lanes = vec![LaneRequest { endpoint: EndpointName::default(), contract, attempts_max: 5 }];
    let (mut settlements, mut total, mut rounds) = (Vec::new(), Duration::ZERO, 0);
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
        let started = Instant::now();
        let exchanged = store.exchange(exchange).await.expect("the disk has room");
        if settled == batch && exchanged.leased.len() == batch {
            total += started.elapsed();
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
