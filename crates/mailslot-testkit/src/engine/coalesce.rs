//! The accept writer: concurrent accepts share appends, and share nothing else.

use super::bench::{Bench, accepted, fine, succeed};
use super::script::{Order, order};
use super::tap::{Call, TapStore};
use futures_util::future::{BoxFuture, join_all};
use futures_util::poll;
use mailslot_core::limits::APPEND_BATCH_MAX;
use mailslot_core::store::{AppendGroup, Filter};
use mailslot_core::{Receipt, StoreErrorKind};
use mailslot_engine::{AcceptError, Inbox};

cases![
    accepts_that_come_while_one_is_written_share_the_next_append,
    accepts_that_come_one_by_one_are_stored_in_their_order,
    an_accept_that_comes_alone_is_stored_at_once,
    a_shared_append_stays_small,
    the_largest_batch_is_stored_beside_others,
    one_refused_message_keeps_no_other_out,
    a_failure_that_may_pass_is_told_to_everyone_and_repeated_for_no_one,
    an_accept_whose_caller_went_away_is_stored,
    the_writer_outlives_the_runtime_that_started_it,
];

type Accepting<'a> = BoxFuture<'a, Result<Receipt, AcceptError>>;

fn inbox(b: &Bench) -> Inbox<TapStore> {
    fine(b.builder().handler(succeed).build())
}

/// Holds the first append in the store, and lets `count` more accepts wait behind it. The first of those returned is
/// the one that is held.
async fn waiting<'a>(b: &Bench, inbox: &'a Inbox<TapStore>, count: u32) -> Vec<Accepting<'a>> {
    b.tap.hold(Call::Append);
    let mut accepting: Vec<Accepting<'a>> = Vec::new();
    for number in 0..=count {
        // With a fresh budget: one that the runtime holds up here would not be queued yet.
        tokio::task::yield_now().await;
        let mut accept: Accepting<'a> =
            Box::pin(std::future::IntoFuture::into_future(inbox.accept(&order(number))));
        assert!(poll!(&mut accept).is_pending(), "the append is held");
        accepting.push(accept);
        b.tap.called(Call::Append, 1).await;
    }
    accepting
}

async fn accepts_that_come_while_one_is_written_share_the_next_append(b: &Bench) {
    let inbox = inbox(b);
    let accepting = waiting(b, &inbox, 300).await;
    b.tap.open(Call::Append);
    assert!(
        join_all(accepting).await.into_iter().all(|receipt| receipt.is_ok_and(|receipt| receipt.is_new()))
    );
    assert_eq!(b.tap.appends(), [1, 300]);
    assert_eq!(inbox.stats().accepted, 301);
}

async fn accepts_that_come_one_by_one_are_stored_in_their_order(b: &Bench) {
    let inbox = inbox(b);
    let accepting = waiting(b, &inbox, 50).await;
    b.tap.open(Call::Append);
    let receipts = join_all(accepting).await;
    let ids: Vec<_> = receipts.into_iter().map(|receipt| fine(receipt).id).collect();
    assert_eq!(b.find(Filter::default()).await, ids);
}

async fn an_accept_that_comes_alone_is_stored_at_once(b: &Bench) {
    let inbox = inbox(b);
    for number in 0..3 {
        accepted(&inbox, number).await;
    }
    assert_eq!(b.tap.appends(), [1, 1, 1]);
}

async fn a_shared_append_stays_small(b: &Bench) {
    let inbox = inbox(b);
    let accepting = waiting(b, &inbox, 1_200).await;
    b.tap.open(Call::Append);
    assert!(join_all(accepting).await.iter().all(Result::is_ok));
    assert_eq!(b.tap.appends(), [1, 512, 512, 176]);
}

async fn the_largest_batch_is_stored_beside_others(b: &Bench) {
    let inbox = inbox(b);
    let accepting = waiting(b, &inbox, 20).await;
    let batch = vec![fine(inbox.accept(&order(1)).prepare()); APPEND_BATCH_MAX];
    let (stored, receipts, ()) =
        tokio::join!(inbox.accept_batch(batch), join_all(accepting), async { b.tap.open(Call::Append) });
    assert_eq!(fine(stored).len(), APPEND_BATCH_MAX);
    assert!(receipts.iter().all(Result::is_ok));
}

/// Refuses orders of this number for good.
fn refuse_order(tap: &TapStore, number: u32) {
    let bytes = fine(<mailslot_core::Json as mailslot_core::Codec<Order>>::encode(&order(number)));
    let bad =
        move |group: &AppendGroup| group.messages.iter().any(|message| *message.payload.bytes() == bytes);
    tap.refuse(move |groups| groups.iter().any(&bad));
}

async fn one_refused_message_keeps_no_other_out(b: &Bench) {
    let inbox = inbox(b);
    let accepting = waiting(b, &inbox, 9).await;
    refuse_order(&b.tap, 4);
    b.tap.open(Call::Append);
    let receipts = join_all(accepting).await;
    for (number, receipt) in receipts.iter().enumerate() {
        assert_eq!(receipt.is_err(), number == 4, "order {number}: {receipt:?}");
    }
    assert!(receipts[4].as_ref().is_err_and(|error| !error.is_transient()));
    assert_eq!(b.find(Filter::default()).await.len(), 9);
}

async fn a_failure_that_may_pass_is_told_to_everyone_and_repeated_for_no_one(b: &Bench) {
    let inbox = inbox(b);
    let accepting = waiting(b, &inbox, 9).await;
    b.tap.fail(Call::Append, StoreErrorKind::Unavailable);
    b.tap.open(Call::Append);
    let failed =
        |answer: &Result<Receipt, AcceptError>| answer.as_ref().is_err_and(AcceptError::is_transient);
    assert!(join_all(accepting).await.iter().all(failed));
    assert_eq!(b.tap.appends(), [1, 9]);
    b.tap.mend(Call::Append);
    assert_eq!(b.find(Filter::default()).await, []);
    accepted(&inbox, 1).await;
}

async fn an_accept_whose_caller_went_away_is_stored(b: &Bench) {
    let inbox = inbox(b);
    let accepting = waiting(b, &inbox, 5).await;
    drop(accepting);
    b.tap.open(Call::Append);
    // The writer stores in order, so when this one is stored, so are those before it.
    accepted(&inbox, 6).await;
    assert_eq!(b.find(Filter::default()).await.len(), 7);
    assert_eq!(inbox.stats().accepted, 7);
}

async fn the_writer_outlives_the_runtime_that_started_it(b: &Bench) {
    let inbox = inbox(b);
    let elsewhere = {
        let inbox = inbox.clone();
        move || {
            let runtime = fine(tokio::runtime::Builder::new_current_thread().enable_all().build());
            runtime.block_on(accepted(&inbox, 1)).id
        }
    };
    let first = fine(tokio::task::spawn_blocking(elsewhere).await);
    let second = accepted(&inbox, 2).await.id;
    assert_eq!(b.find(Filter::default()).await, [first, second]);
}
