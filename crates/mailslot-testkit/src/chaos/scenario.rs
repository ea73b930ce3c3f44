//! Scenarios at the level of the store traits: what a careful caller does, and what must be true in the end,
//! whichever call failed. The conformance suite runs them on every store.

use super::{ChaosStore, FaultPlan, insist};
use crate::message::{MessageBuilder, message, valid};
use crate::store::{Fixture, LEASE, TestStore, claim, every_record};
use futures_util::future::LocalBoxFuture;
use mailslot_core::store::{
    AppendGroup, Appended, Change, Exchange, ExtendRequest, Filter, HandoffResult, Leased, MessageDetail,
    RedriveSpec, RedriveState, RetentionPolicy,
};
use mailslot_core::{
    Disposition, Handoff, InboxStore, MessageId, OperatorStore, OutcomeKind, Reason, Settlement, Status,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A piece of work over a store whose calls fail.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name, a sentence.
    pub name: &'static str,
    /// The work, and the check of what it promises.
    pub body: for<'a> fn(&'a Caller) -> LocalBoxFuture<'a, ()>,
}

/// Every scenario.
pub fn scenarios() -> Vec<Scenario> {
    macro_rules! list {
        ($($name:ident),+ $(,)?) => {
            vec![$(Scenario { name: stringify!($name), body: |caller| Box::pin($name(caller)) }),+]
        };
    }
    list![
        a_repeated_accept_stores_one_message,
        a_repeated_group_is_stored_once_as_a_whole,
        every_message_is_completed_once,
        sessions_keep_their_order,
        retries_end_within_their_attempts,
        heartbeats_keep_a_lease_or_say_that_it_is_lost,
        a_cancel_ends_what_it_asks_for,
        a_handoff_ends_its_message_once,
        a_requeue_starts_one_new_generation,
        a_redrive_requeues_each_dead_letter_once,
        retention_deletes_what_is_over_and_nothing_else,
    ]
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Someone who works with a store that fails.
#[derive(Debug)]
pub struct Caller {
    /// The store as the caller sees it.
    pub store: ChaosStore<dyn TestStore>,
    /// The store inside, its clock and a worker's name.
    pub fixture: Fixture,
}

impl Caller {
    /// Wraps the store of a fixture.
    pub fn new(fixture: Fixture, plan: Arc<FaultPlan>) -> Self {
        Self { store: ChaosStore::new(Arc::clone(&fixture.store), plan), fixture }
    }

    async fn accept(&self, messages: Vec<MessageBuilder>) -> Vec<MessageId> {
        let messages: Vec<_> = messages.into_iter().map(MessageBuilder::build).collect();
        let group = AppendGroup { messages };
        let answers = insist(|| self.store.append(vec![group.clone()])).await;
        let receipt = |answer: Appended| answer.receipt().expect("the group is stored").id;
        answers.into_iter().flatten().map(receipt).collect()
    }

    async fn exchange(&self, settlements: Vec<Settlement>, limit: usize) -> Vec<Leased> {
        let lease = Some(claim("order").limit(limit).request(&self.fixture.owner));
        let exchange = Exchange { settlements, lease };
        // A lost answer may hide a claim; its messages come back when the lease runs out.
        insist(|| self.store.exchange(exchange.clone())).await.leased
    }

    /// Works until nothing is left to do; `handle` decides. Gives the messages in the order of their handling.
    async fn work(&self, handle: impl Fn(&Leased) -> Disposition) -> Vec<MessageId> {
        let mut handled = Vec::new();
        let mut settlements = Vec::new();
        loop {
            let leased = self.exchange(std::mem::take(&mut settlements), 2).await;
            for one in &leased {
                handled.push(one.envelope.id);
                settlements.push(Settlement {
                    lease: one.lease,
                    seq: one.envelope.seq,
                    attempt: one.attempt,
                    disposition: handle(one),
                    error: None,
                });
            }
            if leased.is_empty() && !self.let_time_pass().await {
                return handled;
            }
        }
    }

    /// Moves to the next event and recovers. `false`: nothing waits any more.
    async fn let_time_pass(&self) -> bool {
        let counts = insist(|| self.store.counts()).await;
        let waits = |status| matches!(status, Status::Pending | Status::Leased);
        self.fixture.advance(61);
        insist(|| self.store.recover(100)).await;
        counts.iter().any(|count| waits(count.status))
    }

    async fn change(&self, change: Change, filter: Filter) {
        insist(|| self.store.change(change, &filter, 100)).await;
    }

    async fn dead_letters(&self, number: usize) -> Vec<MessageId> {
        let accepted = self.accept((0..number).map(order).collect()).await;
        self.work(|_| Disposition::DeadLetter { reason: Reason::Permanent }).await;
        accepted
    }

    async fn detail(&self, id: MessageId) -> MessageDetail {
        self.fixture.detail(id).await
    }

    async fn stored(&self) -> Vec<MessageId> {
        self.fixture.find(Filter::default()).await
    }
}

/// An order with a key of its own: what makes an accept safe to repeat.
fn order(n: usize) -> MessageBuilder {
    message("order").key(&format!("k{n}"))
}

fn times(detail: &MessageDetail, kind: OutcomeKind) -> usize {
    detail.history.iter().filter(|outcome| outcome.kind == kind).count()
}

async fn a_repeated_accept_stores_one_message(caller: &Caller) {
    let by_key = caller.accept(vec![order(1)]).await;
    let by_id = caller.accept(vec![message("order").id(MessageId::generate())]).await;
    assert_eq!(caller.stored().await, [by_key, by_id].concat());
}

async fn a_repeated_group_is_stored_once_as_a_whole(caller: &Caller) {
    let accepted = caller.accept((0..5).map(order).collect()).await;
    assert_eq!(caller.stored().await, accepted);
}

async fn every_message_is_completed_once(caller: &Caller) {
    let accepted = caller.accept((0..5).map(order).collect()).await;
    let handled = caller.work(|_| Disposition::Complete).await;
    // At least once handled, exactly once completed.
    assert_eq!(handled.into_iter().collect::<BTreeSet<_>>(), accepted.iter().copied().collect());
    for id in accepted {
        let detail = caller.detail(id).await;
        assert_eq!((detail.record.status, times(&detail, OutcomeKind::Completed)), (Status::Completed, 1));
    }
}

async fn sessions_keep_their_order(caller: &Caller) {
    let accepted = caller.accept((0..4).map(|n| order(n).session("s")).collect()).await;
    let mut handled = caller.work(|_| Disposition::Complete).await;
    // Handled again only before the next one began.
    handled.dedup();
    assert_eq!(handled, accepted);
}

async fn retries_end_within_their_attempts(caller: &Caller) {
    let id = caller.accept(vec![order(1)]).await[0];
    caller.work(|_| Disposition::Retry { after: Duration::from_secs(1), reason: Reason::Failed }).await;
    let detail = caller.detail(id).await;
    assert_eq!((detail.record.status, detail.record.reason), (Status::DeadLettered, Some(Reason::Crashed)));
    assert_eq!(detail.record.attempt.number, crate::store::ATTEMPTS);
}

async fn heartbeats_keep_a_lease_or_say_that_it_is_lost(caller: &Caller) {
    caller.accept(vec![order(1)]).await;
    let Some(leased) = caller.exchange(Vec::new(), 1).await.pop() else {
        // The answer was lost. Nobody extends that lease, so it runs out.
        assert!(caller.let_time_pass().await);
        assert_eq!(caller.exchange(Vec::new(), 1).await.len(), 1);
        return;
    };
    for _ in 0..3 {
        caller.fixture.advance(50);
        let request = ExtendRequest { leases: vec![leased.lease], duration: LEASE };
        insist(|| caller.store.extend(request.clone())).await;
        assert_eq!(insist(|| caller.store.recover(10)).await.returned, 0);
    }
    assert_eq!(caller.detail(leased.envelope.id).await.record.attempt.number, 1);
}

async fn a_cancel_ends_what_it_asks_for(caller: &Caller) {
    let accepted = caller.accept((0..4).map(order).collect()).await;
    caller.exchange(Vec::new(), 2).await;
    caller.change(Change::Cancel, Filter::default()).await;
    caller.fixture.advance(61);
    insist(|| caller.store.recover(100)).await;
    for id in accepted {
        let detail = caller.detail(id).await;
        assert_eq!((detail.record.status, times(&detail, OutcomeKind::Cancelled)), (Status::Cancelled, 1));
    }
}

async fn a_handoff_ends_its_message_once(caller: &Caller) {
    let id = caller.accept(vec![order(1)]).await[0];
    let handoff = valid(Handoff::new("waits for the bank"));
    caller.work(|_| Disposition::Suspend(handoff.clone())).await;
    insist(|| caller.store.settle_handoff(id, HandoffResult::Completed)).await;
    let detail = caller.detail(id).await;
    assert_eq!((detail.record.status, times(&detail, OutcomeKind::Completed)), (Status::Completed, 1));
}

async fn a_requeue_starts_one_new_generation(caller: &Caller) {
    let dead = caller.dead_letters(3).await;
    caller.change(Change::Requeue, Filter::of_ids(dead.clone())).await;
    caller.work(|_| Disposition::Complete).await;
    check_requeued_once(caller, dead).await;
}

async fn check_requeued_once(caller: &Caller, dead: Vec<MessageId>) {
    for id in dead {
        let detail = caller.detail(id).await;
        assert_eq!((detail.record.status, detail.record.attempt.generation), (Status::Completed, 1));
        assert_eq!(times(&detail, OutcomeKind::Requeued), 1);
    }
}

async fn a_redrive_requeues_each_dead_letter_once(caller: &Caller) {
    let dead = caller.dead_letters(5).await;
    let spec = RedriveSpec { filter: Filter::default(), rate: 2 };
    // Repeated in doubt, it may exist twice; each takes only what is dead when it comes by.
    insist(|| caller.store.create_redrive(spec.clone())).await;
    while insist(|| caller.store.redrives()).await.iter().any(|one| one.state == RedriveState::Running) {
        insist(|| caller.store.step_redrives()).await;
        caller.fixture.advance(1);
    }
    caller.work(|_| Disposition::Complete).await;
    check_requeued_once(caller, dead).await;
}

async fn retention_deletes_what_is_over_and_nothing_else(caller: &Caller) {
    caller.accept((0..4).map(order).collect()).await;
    caller.work(|_| Disposition::Complete).await;
    let kept = caller.accept(vec![order(9)]).await;
    caller.fixture.advance(8 * 24 * 3_600);
    let policy = RetentionPolicy::default();
    while insist(|| caller.store.retain(None, &policy, 3)).await > 0 {}
    let left =
        every_record(&*caller.fixture.store, &Filter::default()).await.expect("the store inside never fails");
    assert_eq!(left.iter().map(|record| record.envelope.id).collect::<Vec<_>>(), kept);
    // The keys of what is gone are free, whichever call failed.
    assert_eq!(caller.accept(vec![order(0)]).await.len(), 1);
    assert_eq!(caller.stored().await.len(), 2);
}
