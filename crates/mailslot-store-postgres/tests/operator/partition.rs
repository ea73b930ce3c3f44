//! Retention of closed partitions: what has ended goes with them, and nothing else.

use crate::support::{Place, accept, lease, order, settle};
use mailslot_core::store::{Change, Filter, PageRequest, RetentionPolicy};
use mailslot_core::{Disposition, InboxStore as _, MessageId, OperatorStore as _, Reason, Status};
use mailslot_store_postgres::PostgresStore;
use mailslot_testkit::message::MessageBuilder;
use sqlx::Executor as _;
use std::time::Duration;

const HOUR: i64 = 3_600;

const DAY: i64 = 24 * HOUR;

fn pass(place: &Place, seconds: i64) {
    place.clock.advance(jiff::SignedDuration::from_secs(seconds));
}

/// Lets the next message begin the next partition.
async fn close(place: &Place, store: &PostgresStore) {
    place.by_hand("SELECT setval('mailslot.message_seq', 8388608, false)").await;
    let id = accept(store, [order().due_in(3_650 * DAY)]).await[0];
    assert_eq!(store.get(id).await.expect("it can be had")[0].record.envelope.seq.0, 8_388_608);
}

async fn is_there(place: &Place) -> bool {
    place
        .number("SELECT (to_regclass('mailslot.message_0') IS NOT NULL OR to_regclass('mailslot.outcome_0') IS NOT NULL)::int::bigint")
        .await
        != 0
}

async fn complete(store: &PostgresStore, message: MessageBuilder) -> MessageId {
    let id = accept(store, [message]).await[0];
    settle(store, &lease(store, 1).await[0], Disposition::Complete).await;
    id
}

async fn retain(store: &PostgresStore) -> u64 {
    retain_by(store, &RetentionPolicy::default()).await
}

async fn retain_by(store: &PostgresStore, policy: &RetentionPolicy) -> u64 {
    store.retain(None, policy, 1_000).await.expect("it can be had")
}

async fn ids(store: &PostgresStore) -> Vec<MessageId> {
    let page = store.query(&Filter::default(), &PageRequest::default()).await.expect("it can be had");
    page.items.iter().map(|record| record.envelope.id).collect()
}

async fn assert_sound(store: &PostgresStore) {
    assert_eq!(store.check().await.expect("it can be had"), []);
}

#[tokio::test]
async fn a_closed_partition_in_which_everything_is_past_its_time_is_dropped() {
    let place = Place::new();
    let store = place.open().await;
    complete(&store, order().key("k").session("s")).await;
    accept(&store, [order()]).await;
    settle(&store, &lease(&store, 1).await[0], Disposition::Skip { reason: Reason::Vetoed }).await;
    let cancelled = accept(&store, [order().key("until").session("s")]).await;
    store.change(Change::Cancel, &Filter::of_ids(cancelled), 1).await.expect("it can be had");
    close(&place, &store).await;
    pass(&place, DAY);
    let kept = complete(&store, order().key("other")).await;
    pass(&place, 6 * DAY + 1);
    assert!(is_there(&place).await);
    assert_eq!(retain(&store).await, 3);
    assert!(!is_there(&place).await);
    assert_eq!(place.number("SELECT count(*) FROM mailslot.ledger").await, 1);
    assert!(ids(&store).await.contains(&kept));
    let counts = store.counts().await.expect("it can be had");
    assert_eq!(
        counts.iter().map(|count| (count.status, count.messages)).collect::<Vec<_>>(),
        [(Status::Pending, 1), (Status::Completed, 1)]
    );
    assert_sound(&store).await;
    let again = accept(&store, [order().key("k").payload("other"), order().key("other")]).await;
    assert_eq!(again[1], kept);
    assert_eq!(store.get(again[0]).await.expect("it can be had")[0].record.status, Status::Pending);
}

#[tokio::test]
async fn messages_wait_for_the_last_of_their_partition_if_that_is_soon() {
    let place = Place::new();
    let store = place.open().await;
    let first = complete(&store, order()).await;
    pass(&place, 47 * HOUR);
    complete(&store, order()).await;
    close(&place, &store).await;
    pass(&place, 7 * DAY - 47 * HOUR + 1);
    assert_eq!(retain(&store).await, 0);
    assert!(ids(&store).await.contains(&first));
    pass(&place, 47 * HOUR);
    assert_eq!(retain(&store).await, 2);
    assert!(!is_there(&place).await);
    assert_sound(&store).await;
}

#[tokio::test]
async fn messages_do_not_wait_for_one_that_is_kept_for_much_longer() {
    let place = Place::new();
    let store = place.open().await;
    let first = complete(&store, order()).await;
    pass(&place, 49 * HOUR);
    let last = complete(&store, order()).await;
    close(&place, &store).await;
    pass(&place, 7 * DAY - 49 * HOUR + 1);
    assert_eq!(retain(&store).await, 1);
    let left = ids(&store).await;
    assert!(!left.contains(&first) && left.contains(&last));
    pass(&place, 49 * HOUR);
    assert_eq!(retain(&store).await, 1);
    assert!(!is_there(&place).await);
    assert_sound(&store).await;
}

#[tokio::test]
async fn messages_do_not_wait_for_one_that_has_not_ended() {
    type Make = fn() -> MessageBuilder;
    let unfinished: [(&str, Make); 4] = [
        ("pending", || order().due_in(3_650 * DAY)),
        ("parked", || order().session("s")),
        ("leased", order),
        ("suspended", order),
    ];
    for (status, message) in unfinished {
        let place = Place::new();
        let store = place.open().await;
        if status == "parked" {
            accept(&store, [order().session("s").due_in(3_650 * DAY)]).await;
        }
        let kept = accept(&store, [message()]).await[0];
        if status == "leased" || status == "suspended" {
            let leased = lease(&store, 1).await;
            if status == "suspended" {
                let handoff = mailslot_core::Handoff::new("elsewhere").expect("it can be had");
                settle(&store, &leased[0], Disposition::Suspend(handoff)).await;
            }
        }
        let gone = complete(&store, order()).await;
        close(&place, &store).await;
        pass(&place, 7 * DAY + 1);
        assert_eq!(retain(&store).await, 1, "{status}");
        let left = ids(&store).await;
        assert!(left.contains(&kept) && !left.contains(&gone), "{status}");
        assert!(is_there(&place).await, "{status}");
        assert_sound(&store).await;
    }
}

#[tokio::test]
async fn a_dead_letter_that_is_kept_for_ever_keeps_its_partition() {
    let place = Place::new();
    let store = place.open().await;
    let dead = accept(&store, [order().session("s")]).await[0];
    let verdict = Disposition::DeadLetter { reason: Reason::Permanent };
    settle(&store, &lease(&store, 1).await[0], verdict).await;
    complete(&store, order()).await;
    close(&place, &store).await;
    pass(&place, 30 * DAY);
    assert_eq!(retain(&store).await, 1);
    assert!(is_there(&place).await && ids(&store).await.contains(&dead));
    assert_eq!(store.sessions(true, 10).await.expect("it can be had")[0].head, dead);
    // Requeued and completed, it goes as all the others.
    store.change(Change::Requeue, &Filter::of_ids([dead]), 1).await.expect("it can be had");
    settle(&store, &lease(&store, 1).await[0], Disposition::Complete).await;
    pass(&place, 7 * DAY + 1);
    assert_eq!(retain(&store).await, 1);
    assert!(!is_there(&place).await);
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_dead_head_goes_by_itself_so_that_its_session_goes_on() {
    let place = Place::new();
    let store = place.open().await;
    accept(&store, [order().session("s")]).await;
    let verdict = Disposition::DeadLetter { reason: Reason::Permanent };
    settle(&store, &lease(&store, 1).await[0], verdict).await;
    complete(&store, order()).await;
    close(&place, &store).await;
    let parked = accept(&store, [order().session("s")]).await[0];
    pass(&place, 7 * DAY + 1);
    let week = Some(Duration::from_secs(7 * 24 * 3_600));
    let policy = RetentionPolicy { dead_lettered: week, ..RetentionPolicy::default() };
    assert_eq!(retain_by(&store, &policy).await, 1);
    assert!(is_there(&place).await);
    assert_eq!(lease(&store, 1).await[0].envelope.id, parked);
    pass(&place, 10);
    assert_eq!(retain_by(&store, &policy).await, 1);
    assert!(!is_there(&place).await);
    assert_sound(&store).await;
}

#[tokio::test]
async fn retention_of_one_endpoint_drops_nothing_of_others() {
    let place = Place::new();
    let store = place.open().await;
    complete(&store, order()).await;
    close(&place, &store).await;
    pass(&place, 7 * DAY + 1);
    let billing = mailslot_core::EndpointName::new("billing").expect("it can be had");
    assert_eq!(
        store.retain(Some(&billing), &RetentionPolicy::default(), 10).await.expect("it can be had"),
        0
    );
    let own = mailslot_core::EndpointName::default();
    assert_eq!(store.retain(Some(&own), &RetentionPolicy::default(), 10).await.expect("it can be had"), 1);
    assert!(is_there(&place).await);
    assert_sound(&store).await;
}

/// A store with a closed partition whose time is over.
async fn over() -> (Place, PostgresStore) {
    let place = Place::new();
    let store = place.open().await;
    complete(&store, order()).await;
    close(&place, &store).await;
    pass(&place, 7 * DAY + 1);
    (place, store)
}

#[tokio::test]
async fn a_partition_that_is_in_use_is_dropped_later_and_holds_nobody_up() {
    let (place, store) = over().await;
    let mut reader = place.raw().await;
    reader
        .execute(sqlx::raw_sql(place.sql("BEGIN; SELECT count(*) FROM mailslot.message")))
        .await
        .expect("it can be had");
    let (retained, accepted) = tokio::join!(retain(&store), async {
        let mut accepted = 0;
        for _ in 0..50 {
            accepted += accept(&store, [order()]).await.len();
        }
        accepted
    });
    assert_eq!((retained, accepted), (0, 50));
    assert!(is_there(&place).await);
    reader.execute(sqlx::raw_sql("COMMIT")).await.expect("it can be had");
    pass(&place, 10);
    assert_eq!(retain(&store).await, 1);
    assert!(!is_there(&place).await);
    assert_sound(&store).await;
}

#[tokio::test]
async fn nothing_is_dropped_while_somebody_deletes_messages() {
    let (place, store) = over().await;
    let mut deleting = place.raw().await;
    let lock = "BEGIN; SELECT pg_advisory_xact_lock_shared(hashtextextended('mailslot.deletion', 0))";
    deleting.execute(sqlx::raw_sql(place.sql(lock))).await.expect("it can be had");
    assert_eq!(retain(&store).await, 0);
    assert!(is_there(&place).await);
    deleting.execute(sqlx::raw_sql("COMMIT")).await.expect("it can be had");
    pass(&place, 10);
    assert_eq!(retain(&store).await, 1);
    assert!(!is_there(&place).await);
}

#[tokio::test]
async fn maintenance_leaves_alone_what_somebody_else_works_on() {
    let place = Place::new();
    let store = place.open().await;
    complete(&store, order()).await;
    pass(&place, 7 * DAY + 1);
    let mut other = place.raw().await;
    let lock = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('mailslot.operator', 0))";
    other.execute(sqlx::raw_sql(place.sql(lock))).await.expect("it can be had");
    assert_eq!(retain(&store).await, 0);
    other.execute(sqlx::raw_sql("COMMIT")).await.expect("it can be had");
    assert_eq!(retain(&store).await, 1);
    store.now().await.expect("it can be had");
}
