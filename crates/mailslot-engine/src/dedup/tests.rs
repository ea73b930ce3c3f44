//! Redeliveries are skipped, and nothing else is; old records go.

use super::{Cleanup, Dedup, DedupError};
use async_trait::async_trait;
use mailslot_core::store::{Claim, Claimed, Concluded, Conclusion, Lookup, Question};
use mailslot_core::{
    DeliveryIdentity, EndpointName, LedgerStore, ManualClock, MemoryStore, StoreError, StoreErrorKind,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tower::{Layer as _, Service as _, ServiceExt as _};
use uuid::Uuid;

/// A ledger that writes down its calls, and fails where it is told to.
#[derive(Clone, Default)]
struct Watched {
    store: Option<MemoryStore>,
    calls: Arc<Mutex<Vec<&'static str>>>,
    fails: Arc<AtomicBool>,
    purged: Arc<Notify>,
}

impl Watched {
    fn over(store: MemoryStore) -> Self {
        Self { store: Some(store), ..Self::default() }
    }

    fn called(&self, name: &'static str) -> Result<&MemoryStore, StoreError> {
        self.calls.lock().unwrap().push(name);
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::new(StoreErrorKind::Unavailable, "test", "secret host is down"));
        }
        Ok(self.store.as_ref().unwrap())
    }

    fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

#[async_trait]
impl LedgerStore for Watched {
    async fn look_up(&self, questions: &[Question]) -> Result<Vec<Lookup>, StoreError> {
        self.called("look_up")?.look_up(questions).await
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) -> Result<Vec<Concluded>, StoreError> {
        self.called("conclude")?.conclude(conclusions).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.called("claim")?.claim(claim).await
    }

    async fn give_up(&self, identity: &DeliveryIdentity, owner: Uuid) -> Result<(), StoreError> {
        self.called("give_up")?.give_up(identity, owner).await
    }

    async fn purge(
        &self,
        endpoint: &EndpointName,
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let purged = match self.called("purge") {
            Ok(store) => store.purge(endpoint, retention, limit).await,
            Err(error) => Err(error),
        };
        self.purged.notify_one();
        purged
    }
}

/// What a broker delivers.
struct Delivered {
    id: Option<&'static str>,
}

struct Bench {
    ledger: Watched,
    dedup: Dedup<Delivered, &'static str>,
    handled: Arc<AtomicU32>,
    fails: Arc<AtomicBool>,
}

impl Bench {
    fn new() -> Self {
        let ledger = Watched::over(MemoryStore::new());
        let id_of = |delivered: &Delivered| delivered.id.map(str::to_owned);
        let dedup = Dedup::new(ledger.clone(), EndpointName::default(), id_of, |_| "skipped");
        Self { ledger, dedup, handled: Arc::default(), fails: Arc::default() }
    }

    async fn deliver(&self, id: Option<&'static str>) -> Result<&'static str, DedupError<std::io::Error>> {
        let (handled, fails) = (Arc::clone(&self.handled), Arc::clone(&self.fails));
        let mut service = self.dedup.layer(tower::service_fn(move |_| {
            handled.fetch_add(1, Ordering::SeqCst);
            let failed = fails.load(Ordering::SeqCst);
            async move { if failed { Err(std::io::Error::other("the bank is closed")) } else { Ok("done") } }
        }));
        service.ready().await?.call(Delivered { id }).await
    }

    fn handled(&self) -> u32 {
        self.handled.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_fresh_delivery_costs_one_look_and_one_record() {
    let bench = Bench::new();
    assert_eq!(bench.deliver(Some("m1")).await.unwrap(), "done");
    assert_eq!(bench.ledger.take_calls(), ["look_up", "conclude"]);
    assert_eq!(bench.deliver(Some("m1")).await.unwrap(), "skipped");
    assert_eq!(bench.ledger.take_calls(), ["look_up"]);
    assert_eq!(bench.handled(), 1);
    let counts = *bench.dedup.counts().borrow();
    assert_eq!((counts.recorded, counts.duplicates), (1, 1));
}

#[tokio::test]
async fn a_delivery_that_failed_is_handled_again() {
    let bench = Bench::new();
    bench.fails.store(true, Ordering::SeqCst);
    assert!(matches!(bench.deliver(Some("m1")).await, Err(DedupError::Handler(_))));
    assert_eq!(bench.ledger.take_calls(), ["look_up"]);
    bench.fails.store(false, Ordering::SeqCst);
    assert_eq!(bench.deliver(Some("m1")).await.unwrap(), "done");
    assert_eq!(bench.handled(), 2);
}

#[tokio::test]
async fn an_answer_that_is_no_success_is_not_recorded() {
    let mut bench = Bench::new();
    bench.dedup = bench.dedup.clone().handled_if(|answer| *answer != "done");
    for _ in 0..2 {
        assert_eq!(bench.deliver(Some("m1")).await.unwrap(), "done");
    }
    assert_eq!(bench.ledger.take_calls(), ["look_up", "look_up"]);
}

#[tokio::test]
async fn what_cannot_be_recognised_is_handled_and_asks_nobody() {
    let bench = Bench::new();
    let long: &'static str = "x".repeat(513).leak();
    for id in [None, Some(""), Some(" \t"), Some(long), None] {
        assert_eq!(bench.deliver(id).await.unwrap(), "done");
    }
    assert_eq!(bench.ledger.take_calls(), Vec::<&str>::new());
    assert_eq!((bench.handled(), bench.dedup.counts().borrow().unrecognisable), (5, 5));
}

#[tokio::test]
async fn a_store_that_fails_is_no_duplicate_and_its_cause_stays_here() {
    let bench = Bench::new();
    bench.ledger.fails.store(true, Ordering::SeqCst);
    let error = bench.deliver(Some("m1")).await.unwrap_err();
    assert_eq!(bench.handled(), 0);
    assert_eq!(error.to_string(), "the ledger of deliveries could not look up this one; deliver it again");
    assert!(std::error::Error::source(&error).is_none());
    bench.ledger.fails.store(false, Ordering::SeqCst);
    assert_eq!(bench.deliver(Some("m1")).await.unwrap(), "done");
    assert_eq!(bench.dedup.counts().borrow().store_errors, 1);
}

/// The handler has run; the delivery comes again and runs it again, as the guarantee says.
#[tokio::test]
async fn a_record_that_fails_fails_the_delivery() {
    let bench = Bench::new();
    let ledger = bench.ledger.clone();
    let mut service = bench.dedup.layer(tower::service_fn(move |_| {
        ledger.fails.store(true, Ordering::SeqCst);
        async { Ok::<_, std::io::Error>("done") }
    }));
    let error = service.ready().await.unwrap().call(Delivered { id: Some("m1") }).await.unwrap_err();
    assert!(matches!(error, DedupError::Ledger { what: "record" }));
    bench.ledger.fails.store(false, Ordering::SeqCst);
    assert_eq!(bench.deliver(Some("m1")).await.unwrap(), "done");
}

#[tokio::test]
async fn duplicates_are_observed() {
    let mut bench = Bench::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    bench.dedup = bench
        .dedup
        .clone()
        .on_duplicate(move |identity| sink.lock().unwrap().push(identity.message_id().to_owned()));
    for id in ["m1", "m2", "m1"] {
        bench.deliver(Some(id)).await.unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), ["m1"]);
}

#[tokio::test]
async fn an_observer_that_panics_changes_nothing() {
    let mut bench = Bench::new();
    bench.dedup = bench.dedup.clone().on_duplicate(|_| panic!("an observer's own fault"));
    for answer in ["done", "skipped", "skipped"] {
        assert_eq!(bench.deliver(Some("m1")).await.unwrap(), answer);
    }
}

async fn remember(store: &MemoryStore, ids: impl Iterator<Item = u32>) {
    let identity = |id: u32| DeliveryIdentity::new(&EndpointName::default(), Some(&id.to_string())).unwrap();
    let handled = ids.map(|id| Conclusion::Handled(identity(id))).collect();
    store.conclude(handled).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pass_at_the_start_goes_on_until_nothing_old_is_left() {
    let clock = Arc::new(ManualClock::default());
    let store = MemoryStore::with_clock(clock.clone());
    remember(&store, 0..25).await;
    clock.advance(jiff::SignedDuration::from_hours(8 * 24));
    remember(&store, 100..103).await;
    let cleanup = Cleanup { batch: 10, ..Cleanup::of(EndpointName::default()) };
    let ledger = Watched::over(store.clone());
    let passed = async {
        while ledger.calls.lock().unwrap().len() < 3 {
            ledger.purged.notified().await;
        }
    };
    cleanup.clone().run(ledger.clone(), passed).await.unwrap();
    assert_eq!(ledger.take_calls(), ["purge", "purge", "purge"]);
    assert_eq!(cleanup.pass(&store).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_failed_is_repeated_with_the_next() {
    let ledger = Watched::over(MemoryStore::new());
    ledger.fails.store(true, Ordering::SeqCst);
    let begun = tokio::time::Instant::now();
    let passed = async {
        ledger.purged.notified().await;
        ledger.fails.store(false, Ordering::SeqCst);
        ledger.purged.notified().await;
    };
    Cleanup::of(EndpointName::default()).run(ledger.clone(), passed).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(3600), "the clock of the test stands still otherwise");
    assert_eq!(ledger.take_calls(), ["purge", "purge"]);
}

#[tokio::test]
async fn settings_of_zero_are_refused_by_name() {
    let usual = Cleanup::of(EndpointName::default());
    let refused = [
        (Cleanup { retention: Duration::ZERO, ..usual.clone() }, "cleanup.retention"),
        (Cleanup { every: Duration::ZERO, ..usual.clone() }, "cleanup.every"),
        (Cleanup { batch: 0, ..usual }, "cleanup.batch"),
    ];
    for (cleanup, field) in refused {
        let error = cleanup.run(MemoryStore::new(), std::future::ready(())).await.unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
}
