//! Sessions: what is behind a failure waits, and nothing overtakes.

use super::super::bench::{Bench, RETRY_SECONDS, fail, fine, succeed};
use super::super::script::{Order, Run, Runs, noted, scripted};
use super::{Rig, Running, encoded, rig, sent, sent_in, start};
use async_trait::async_trait;
use mailslot_core::broker::{
    BrokerCapabilities, BrokerDelivery, BrokerError, BrokerMessage, BrokerSettlement, DeliveryTag,
    MemoryReceiver, Receiver,
};
use mailslot_core::store::{Change, Filter};
use mailslot_core::{HandlerError, MessageId, Status, Verdict};
use mailslot_engine::Deduplication;

cases![
    what_is_behind_a_failure_is_parked_and_handled_in_order,
    a_blocked_session_holds_up_no_other,
    a_duplicate_is_recognised_whatever_blocks_its_session,
    a_redelivery_of_what_blocks_its_session_is_not_handled_again,
    a_redelivery_of_what_is_parked_is_not_parked_again,
    a_new_delivery_waits_behind_parked_ones_whose_block_is_gone,
    a_dead_letter_blocks_its_session_until_somebody_skips_it,
    an_unsupported_message_blocks_nothing,
    sessions_keep_their_order_on_a_broker_that_keeps_none,
    what_comes_back_too_often_is_left_to_the_counted_attempts,
    copies_of_one_message_are_handled_one_after_the_other,
];

/// A subscriber whose handler has failed for the first of three messages of a session, which all wait now.
async fn blocked(rig: &Rig<'_>) -> (Running, Runs) {
    let (handler, mut runs) = scripted();
    let subscriber = start(rig.recognising(rig.bench.builder().handler(handler)));
    rig.publish([1, 2, 3].map(|number| sent_in("s", &number.to_string(), number))).await;
    runs.next().await.end(Verdict::from(HandlerError::retryable("the bank is closed")));
    subscriber.until(|counts| counts.retried == 1 && counts.parked == 2).await;
    (subscriber, runs)
}

/// The runs come in this order, one after the other.
async fn run_on(runs: &mut Runs, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        let run = runs.next().await;
        assert_eq!(run.order.number, number);
        assert!(runs.is_empty(), "one at a time");
        run.complete();
    }
}

async fn ends_with(subscriber: Running, completed: u64) {
    fine(subscriber.inbox().watch().wait_for(|stats| stats.completed == completed).await);
    subscriber.stop().await;
}

async fn what_is_behind_a_failure_is_parked_and_handled_in_order(b: &Bench) {
    let rig = rig(b);
    let (subscriber, mut runs) = blocked(&rig).await;
    b.advance(RETRY_SECONDS);
    subscriber.inbox().wake();
    run_on(&mut runs, 1..=3).await;
    ends_with(subscriber, 3).await;
    assert_eq!(rig.depth(), 0, "nothing waits with the broker");
}

async fn a_blocked_session_holds_up_no_other(b: &Bench) {
    let rig = rig(b);
    let (subscriber, mut runs) = blocked(&rig).await;
    rig.publish([sent_in("t", "4", 4), sent("5", 5)]).await;
    let others: [Run; 2] = runs.take_sorted().await;
    assert_eq!(others.each_ref().map(|run| run.order.number), [4, 5]);
    others.into_iter().for_each(Run::complete);
    subscriber.until(|counts| counts.handled == 2).await;
    subscriber.stop().await;
}

async fn a_duplicate_is_recognised_whatever_blocks_its_session(b: &Bench) {
    let rig = rig(b);
    let fail_second = |order: Order| async move {
        if order.number == 2 { Err(HandlerError::retryable("closed")) } else { Ok(()) }
    };
    let subscriber = start(rig.recognising(b.builder().handler(fail_second)));
    rig.publish([sent_in("s", "1", 1), sent_in("s", "2", 2)]).await;
    subscriber.until(|counts| counts.handled == 1 && counts.retried == 1).await;
    rig.publish([sent_in("s", "1", 1)]).await;
    let counts = subscriber.until(|counts| counts.duplicates == 1).await;
    assert_eq!(counts.parked, 0);
    subscriber.stop().await;
}

async fn a_redelivery_of_what_blocks_its_session_is_not_handled_again(b: &Bench) {
    let rig = rig(b);
    let (subscriber, mut runs) = blocked(&rig).await;
    rig.publish([sent_in("s", "1", 1)]).await;
    let counts = subscriber.until(|counts| counts.known == 1).await;
    assert_eq!((counts.parked, counts.retried), (2, 1));
    b.advance(RETRY_SECONDS);
    subscriber.inbox().wake();
    run_on(&mut runs, 1..=3).await;
    ends_with(subscriber, 3).await;
    assert_eq!(rig.depth(), 0);
}

async fn a_redelivery_of_what_is_parked_is_not_parked_again(b: &Bench) {
    let rig = rig(b);
    let (subscriber, _runs) = blocked(&rig).await;
    rig.publish([sent_in("s", "2", 2)]).await;
    subscriber.until(|counts| counts.known == 1).await;
    subscriber.stop().await;
    assert_eq!(b.find(Filter::default()).await.len(), 3);
}

async fn a_new_delivery_waits_behind_parked_ones_whose_block_is_gone(b: &Bench) {
    let rig = rig(b);
    let (subscriber, mut runs) = blocked(&rig).await;
    // Nobody works on the stored ones, so that they are still there when the block is gone.
    fine(subscriber.inbox().control().pause().await);
    let first = stored_of(b, 0).await;
    b.advance(RETRY_SECONDS);
    let skipped = Filter { ids: Some(vec![first]), ..Filter::default() };
    fine(b.store.change(Change::Cancel, &skipped, 1).await);
    rig.publish([sent_in("s", "4", 4)]).await;
    subscriber.until(|counts| counts.parked == 3).await;
    subscriber.inbox().control().resume();
    run_on(&mut runs, 2..=4).await;
    ends_with(subscriber, 3).await;
}

/// The id of the stored message at this place of acceptance.
async fn stored_of(b: &Bench, place: usize) -> MessageId {
    b.find(Filter::default()).await[place]
}

async fn a_dead_letter_blocks_its_session_until_somebody_skips_it(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler)));
    rig.publish([sent_in("s", "1", 1), sent_in("s", "2", 2)]).await;
    runs.next().await.end(Verdict::from(HandlerError::permanent("no such account")));
    subscriber.until(|counts| counts.dead_lettered == 1 && counts.parked == 1).await;
    let dead = stored_of(b, 0).await;
    fine(b.store.change(Change::Skip, &Filter { ids: Some(vec![dead]), ..Filter::default() }, 1).await);
    subscriber.inbox().wake();
    run_on(&mut runs, [2]).await;
    ends_with(subscriber, 1).await;
    assert_eq!(b.status(dead).await, Status::Skipped);
}

async fn an_unsupported_message_blocks_nothing(b: &Bench) {
    let rig = rig(b);
    let subscriber = start(rig.recognising(b.builder().handler(succeed)));
    let mut unknown = sent_in("s", "1", 1);
    unknown.headers.insert(mailslot_core::broker::CONTRACT_HEADER.to_owned(), "nobody.knows@1".to_owned());
    rig.publish([unknown.clone(), sent_in("s", "2", 2), unknown]).await;
    let counts = subscriber.until(|counts| counts.handled == 1 && counts.known == 1).await;
    assert_eq!((counts.unsupported, counts.parked), (1, 0));
    subscriber.stop().await;
    let dead = stored_of(b, 0).await;
    assert_eq!(b.end(dead).await, (Status::DeadLettered, Some(mailslot_core::Reason::Unsupported)));
}

/// A receiver of a broker that can do little.
pub(super) struct Plain(pub(super) MemoryReceiver);

#[async_trait]
impl Receiver for Plain {
    fn capabilities(&self) -> BrokerCapabilities {
        let mut capabilities = BrokerCapabilities::none("plain");
        capabilities.redelivery_count = true;
        capabilities
    }

    async fn open(&self) -> Result<(), BrokerError> {
        self.0.open().await
    }

    async fn receive(&self, max: usize) -> Result<Vec<BrokerDelivery>, BrokerError> {
        self.0.receive(max).await
    }

    async fn settle(
        &self,
        settlements: Vec<(DeliveryTag, BrokerSettlement)>,
    ) -> Vec<Result<(), BrokerError>> {
        self.0.settle(settlements).await
    }
}

async fn sessions_keep_their_order_on_a_broker_that_keeps_none(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let inbox = b.builder().handler(handler).subscribe(Plain(rig.receiver()));
    let subscriber = start(inbox.dedup(Deduplication::new()));
    rig.publish([1, 2, 3].map(|number| sent_in("s", &number.to_string(), number))).await;
    let counts = subscriber.until(|counts| counts.deferred + counts.parked == 3).await;
    assert!(counts.deferred >= 1 && counts.handled == 0);
    run_on(&mut runs, 1..=3).await;
    fine(subscriber.inbox().watch().wait_for(|stats| stats.completed == 3).await);
    rig.publish([sent_in("s", "2", 2)]).await;
    subscriber.until(|counts| counts.duplicates == 1).await;
    subscriber.stop().await;
}

async fn what_comes_back_too_often_is_left_to_the_counted_attempts(b: &Bench) {
    let rig = rig(b);
    rig.publish([sent("1", 1)]).await;
    for _ in 0..10 {
        // As if its handler had killed the process each time.
        let receiver = rig.receiver();
        assert_eq!(fine(receiver.receive(1).await).len(), 1);
    }
    let subscriber = start(rig.recognising(b.builder().handler(fail)));
    let counts = subscriber.until(|counts| counts.deferred == 1).await;
    assert_eq!(counts.retried, 0, "the stored message counts its attempts from the first one");
    fine(subscriber.inbox().watch().wait_for(|stats| stats.retried == 1).await);
    subscriber.stop().await;
}

async fn copies_of_one_message_are_handled_one_after_the_other(b: &Bench) {
    let rig = rig(b);
    let (handler, mut runs) = scripted();
    let subscriber = start(rig.recognising(b.builder().handler(handler)));
    let copy = || BrokerMessage { payload: encoded(&noted("copy")), ..sent("1", 1) };
    rig.publish([copy(), copy(), copy()]).await;
    let only = runs.next().await;
    subscriber.until(|counts| counts.received == 3).await;
    assert!(runs.is_empty());
    only.complete();
    subscriber.until(|counts| counts.handled == 1 && counts.duplicates == 2).await;
    subscriber.stop().await;
}
