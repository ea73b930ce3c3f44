//! The transition table: every event in every state, with the answer that the core's table gives.

use super::verbs::{done, handoff, order, retry_in, settlement};
use super::{Fixture, Placed, claim};
use crate::message::message;
use mailslot_core::state::Event;
use mailslot_core::store::{Change, HandoffResult};
use mailslot_core::{Disposition, ErrorText, LeaseToken, Reason, Settlement, Status};

cases![
    accept_and_accept_behind_lead_to_pending_and_parked,
    lease_takes_only_what_is_pending,
    exhaust_takes_only_what_is_pending,
    complete_takes_only_what_is_leased,
    retry_takes_only_what_is_leased,
    dead_letter_takes_only_what_is_leased,
    skip_takes_only_what_is_leased,
    suspend_takes_only_what_is_leased,
    release_takes_only_what_is_leased,
    expire_takes_only_what_is_leased,
    complete_handoff_takes_only_what_is_suspended,
    fail_handoff_takes_only_what_is_suspended,
    cancel_takes_whatever_has_not_ended,
    requeue_takes_only_dead_letters,
    operator_skip_takes_only_dead_letters,
    unpark_takes_only_what_is_parked,
];

/// The event as a store sees it.
#[derive(Clone)]
enum Act {
    Lease { attempts_max: u32 },
    Settle(Disposition),
    Expire,
    Handoff(HandoffResult),
    Change(Change),
}

impl Act {
    async fn apply(&self, fx: &Fixture, placed: &Placed, contract: &str) {
        match self {
            Self::Lease { attempts_max } => {
                fx.claim(claim(contract).attempts(*attempts_max)).await;
            }
            Self::Settle(disposition) => {
                fx.exchange(vec![fenced(fx, placed, disposition.clone()).await], None).await;
            }
            Self::Expire => {
                fx.advance(61);
                fx.recover().await;
            }
            Self::Handoff(result) => {
                done(fx.store.settle_handoff(placed.id, result.clone()).await);
            }
            Self::Change(change) => {
                fx.change(*change, [placed.id]).await;
            }
        }
    }
}

/// A settlement with the best token there is: that of the lease that the message has or had.
async fn fenced(fx: &Fixture, placed: &Placed, disposition: Disposition) -> Settlement {
    if let Some(lease) = &placed.lease {
        return settlement(lease, disposition);
    }
    let record = fx.record(placed.id).await;
    let lease = LeaseToken { owner: fx.owner.session(), generation: 1 };
    Settlement { lease, seq: record.envelope.seq, attempt: record.attempt, disposition, error: None }
}

/// Tries `event` in every state and compares with the table of the core.
async fn check(fx: &Fixture, event: Event, act: Act) {
    for &from in Status::ALL {
        check_from(fx, from, &act, from.on(event)).await;
    }
}

async fn check_from(fx: &Fixture, from: Status, act: &Act, to: Option<Status>) {
    let contract = format!("order-{from}");
    let placed = fx.place(message(&contract), from).await;
    let before = fx.detail(placed.id).await;
    act.apply(fx, &placed, &contract).await;
    let after = fx.detail(placed.id).await;
    match to {
        Some(to) => assert_eq!(after.record.status, to, "from {from}"),
        None => assert_eq!(after, before, "nothing happens from {from}"),
    }
}

async fn accept_and_accept_behind_lead_to_pending_and_parked(fx: &Fixture) {
    let ids = fx.accept_all([order().session("s"), order().session("s")]).await;
    assert_eq!(fx.statuses([ids[0], ids[1]]).await, [Status::Pending, Status::Parked]);
}

async fn lease_takes_only_what_is_pending(fx: &Fixture) {
    check(fx, Event::Lease, Act::Lease { attempts_max: 5 }).await;
}

async fn exhaust_takes_only_what_is_pending(fx: &Fixture) {
    // No attempt is allowed at all, so even a message that was never leased has used them up.
    check(fx, Event::Exhaust, Act::Lease { attempts_max: 0 }).await;
}

async fn complete_takes_only_what_is_leased(fx: &Fixture) {
    check(fx, Event::Complete, Act::Settle(Disposition::Complete)).await;
}

async fn retry_takes_only_what_is_leased(fx: &Fixture) {
    check(fx, Event::Retry, Act::Settle(retry_in(5))).await;
}

async fn dead_letter_takes_only_what_is_leased(fx: &Fixture) {
    check(fx, Event::DeadLetter, Act::Settle(Disposition::DeadLetter { reason: Reason::Permanent })).await;
}

async fn skip_takes_only_what_is_leased(fx: &Fixture) {
    let act = Act::Settle(Disposition::Skip { reason: Reason::Vetoed });
    for &from in Status::ALL {
        // The table's other row of this event is the operator's.
        let to = from.on(Event::Skip).filter(|_| from == Status::Leased);
        check_from(fx, from, &act, to).await;
    }
}

async fn suspend_takes_only_what_is_leased(fx: &Fixture) {
    check(fx, Event::Suspend, Act::Settle(Disposition::Suspend(handoff()))).await;
}

async fn release_takes_only_what_is_leased(fx: &Fixture) {
    check(fx, Event::Release, Act::Settle(Disposition::Release)).await;
}

async fn expire_takes_only_what_is_leased(fx: &Fixture) {
    check(fx, Event::Expire, Act::Expire).await;
}

async fn complete_handoff_takes_only_what_is_suspended(fx: &Fixture) {
    check(fx, Event::CompleteHandoff, Act::Handoff(HandoffResult::Completed)).await;
}

async fn fail_handoff_takes_only_what_is_suspended(fx: &Fixture) {
    let failed = HandoffResult::Failed(ErrorText::new("refused"));
    check(fx, Event::FailHandoff, Act::Handoff(failed)).await;
}

async fn cancel_takes_whatever_has_not_ended(fx: &Fixture) {
    check(fx, Event::Cancel, Act::Change(Change::Cancel)).await;
}

async fn requeue_takes_only_dead_letters(fx: &Fixture) {
    check(fx, Event::Requeue, Act::Change(Change::Requeue)).await;
}

async fn operator_skip_takes_only_dead_letters(fx: &Fixture) {
    for &from in Status::ALL {
        let to = from.on(Event::Skip).filter(|_| from == Status::DeadLettered);
        check_from(fx, from, &Act::Change(Change::Skip), to).await;
    }
}

async fn unpark_takes_only_what_is_parked(fx: &Fixture) {
    let head = fx.accept(order().session("s")).await.id;
    let parked = fx.accept(order().session("s")).await.id;
    fx.change(Change::Cancel, [head]).await;
    assert_eq!(Some(fx.status(parked).await), Status::Parked.on(Event::Unpark));
}
