//! Each load on an inbox in memory: what it counts is what happened.

#![expect(clippy::unwrap_used, reason = "this is a test, helpers included")]

use mailslot_core::{MemoryStore, OperatorStore as _, Status};
use mailslot_engine::AnyStore;
use mailslot_load::{
    Contender as _, Load, OurInbox, Settings, Span, accept, both, drain, execute, fill, latency,
};
use std::sync::Arc;
use std::time::Duration;

const SPAN: Span = Span { warm_up: Duration::from_millis(10), measured: Duration::from_millis(100) };

/// A store with an inbox on it.
fn inbox(max_age: Option<Duration>) -> (MemoryStore, Arc<OurInbox>) {
    let store = MemoryStore::new();
    let settings = Settings { concurrency: 8, handler: None, max_age };
    let inbox = OurInbox::build(AnyStore::new(store.clone()), settings).unwrap();
    (store, Arc::new(inbox))
}

async fn count(store: &MemoryStore, status: Status) -> u64 {
    let counts = store.counts().await.unwrap();
    counts.iter().filter(|count| count.status == status).map(|count| count.messages).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_are_counted_in_messages() {
    let (store, inbox) = inbox(None);
    let load = Load { callers: 2, batch: 10, keyed: true, span: SPAN };
    let sample = accept(inbox, load, None).await.unwrap();
    assert!(sample.messages > 0 && sample.messages.is_multiple_of(10), "{}", sample.messages);
    assert!(count(&store, Status::Pending).await >= sample.messages);
    // A call of each caller may have begun before the measurement, and is not timed.
    assert!(sample.calls.unwrap().len() + load.callers as u64 >= sample.messages / 10);
    assert!(sample.starts.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_worked_off() {
    let (store, inbox) = inbox(None);
    fill(inbox.clone(), 2_500).await.unwrap();
    assert_eq!(count(&store, Status::Pending).await, 2_500);
    let sample = drain(inbox.clone(), 2_500, SPAN, None).await.unwrap();
    assert!(sample.messages > 0 && sample.per_second > 0.0);
    let left = 2_500 - inbox.completed();
    execute(inbox.clone(), 2_500).await.unwrap();
    assert!(left < 2_500 && count(&store, Status::Completed).await == 2_500);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_jobs_are_measured_by_the_slower_one() {
    let (_, inbox) = inbox(None);
    let load = Load { callers: 4, batch: 1, keyed: false, span: SPAN };
    let sample = both(inbox.clone(), load, None).await.unwrap();
    assert!(sample.messages > 0 && sample.messages <= inbox.completed());
    assert!(sample.behind.unwrap() > 0.0);
    assert!(!sample.calls.unwrap().is_empty() && !sample.starts.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lateness_of_every_message_counts_the_last_ones_too() {
    let (_, inbox) = inbox(None);
    let sample = latency(inbox, 200.0, SPAN, None).await.unwrap();
    assert!(sample.messages > 0);
    assert_eq!(sample.calls.unwrap().len(), sample.messages);
    assert_eq!(sample.starts.unwrap().len(), sample.messages);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_measurement_that_is_given_up_works_no_more() {
    let (_, inbox) = inbox(None);
    let span = Span { measured: Duration::from_secs(3_600), ..SPAN };
    let load = Load { callers: 2, batch: 1, keyed: false, span };
    let measuring = tokio::spawn(both(inbox.clone(), load, None));
    until(|| inbox.completed() > 0).await;
    measuring.abort();
    assert!(measuring.await.unwrap_err().is_cancelled());
    // Its tasks hold the inbox: it is ours alone when the last of them ended.
    until(|| Arc::strong_count(&inbox) == 1).await;
}

async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("it never comes");
}
