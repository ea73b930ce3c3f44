//! Cancelling: at once where nobody works on a message, by request where somebody does.

use super::Fixture;
use super::verbs::{claim, handoff, order, retry_in, settlement};
use crate::message::message;
use mailslot_core::store::{Change, Extended, Filter, Leased, Recovered, Settled};
use mailslot_core::{Disposition, OutcomeKind, Reason, Status};
use std::collections::BTreeSet;

cases![
    whatever_has_not_ended_can_be_cancelled,
    a_cancelled_message_says_who_and_when,
    a_scheduled_message_is_never_leased_after_its_cancel,
    a_leased_message_keeps_the_request_until_its_worker_answers,
    the_request_reaches_the_worker_with_its_extension,
    only_requested_messages_are_reported,
    a_request_is_counted_once,
    a_request_takes_a_retry,
    a_request_takes_a_release,
    a_request_takes_a_suspension,
    a_request_takes_an_expiry,
    a_request_does_not_take_a_completion,
    a_request_does_not_take_a_dead_letter_or_a_skip,
    a_request_dies_with_its_attempt,
    a_cancel_of_a_leased_message_changes_nothing_for_others_in_its_batch,
];

async fn whatever_has_not_ended_can_be_cancelled(fx: &Fixture) {
    for &status in Status::ALL {
        let placed = fx.place(message(&format!("order-{status}")), status).await;
        let changes = u64::from(!status.is_terminal());
        assert_eq!(fx.change(Change::Cancel, [placed.id]).await, changes, "{status}");
        let expected = match status {
            Status::Leased => Status::Leased,
            ended if ended.is_terminal() => ended,
            _ => Status::Cancelled,
        };
        assert_eq!(fx.status(placed.id).await, expected);
    }
}

async fn a_cancelled_message_says_who_and_when(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    fx.advance(10);
    fx.change(Change::Cancel, [id]).await;
    let detail = fx.detail(id).await;
    assert_eq!((detail.record.status, detail.record.reason), (Status::Cancelled, Some(Reason::Operator)));
    assert_eq!((detail.record.ended_at, detail.record.due_at), (Some(fx.now()), None));
    assert_eq!((detail.history[0].kind, detail.history[0].at), (OutcomeKind::Cancelled, fx.now()));
    assert_eq!(detail.history.len(), 1);
}

async fn a_scheduled_message_is_never_leased_after_its_cancel(fx: &Fixture) {
    let id = fx.accept(order().due_in(10)).await.id;
    fx.change(Change::Cancel, [id]).await;
    fx.advance(20);
    let exchanged = fx.claim(claim("order")).await;
    assert_eq!((exchanged.leased, exchanged.next_due), (vec![], None));
}

async fn requested(fx: &Fixture) -> Leased {
    let id = fx.accept(order()).await.id;
    let leased = fx.lease_one().await;
    assert_eq!(fx.change(Change::Cancel, [id]).await, 1);
    leased
}

async fn a_leased_message_keeps_the_request_until_its_worker_answers(fx: &Fixture) {
    let leased = requested(fx).await;
    let detail = fx.detail(leased.envelope.id).await;
    assert_eq!((detail.record.status, detail.record.cancel_requested), (Status::Leased, true));
    assert_eq!(detail.history, []);
}

async fn the_request_reaches_the_worker_with_its_extension(fx: &Fixture) {
    let leased = requested(fx).await;
    let expected = Extended::Held { until: fx.after(60), cancel_requested: vec![leased.envelope.seq] };
    assert_eq!(fx.extend([leased.lease]).await, std::slice::from_ref(&expected));
    // Again with each extension: an answer may get lost on its way.
    assert_eq!(fx.extend([leased.lease]).await, [expected]);
}

async fn only_requested_messages_are_reported(fx: &Fixture) {
    let accepted = fx.accept_all((0..4).map(|_| order())).await;
    let first = fx.lease(3).await;
    let second = fx.lease(1).await;
    fx.change(Change::Cancel, [accepted[0], accepted[2]]).await;
    let answers = fx.extend([second[0].lease, first[0].lease]).await;
    let requested = |answer: &Extended| match answer {
        Extended::Held { cancel_requested, .. } => cancel_requested.iter().copied().collect::<BTreeSet<_>>(),
        Extended::Lost => panic!("the lease is held"),
    };
    let expected = BTreeSet::from([first[0].envelope.seq, first[2].envelope.seq]);
    assert_eq!([requested(&answers[0]), requested(&answers[1])], [BTreeSet::new(), expected]);
}

async fn a_request_is_counted_once(fx: &Fixture) {
    let leased = requested(fx).await;
    assert_eq!(fx.change(Change::Cancel, [leased.envelope.id]).await, 0);
}

async fn check_taken(fx: &Fixture, disposition: Disposition) {
    let leased = requested(fx).await;
    assert_eq!(fx.settle(&leased, disposition).await, Settled::Applied(Status::Cancelled));
    let detail = fx.detail(leased.envelope.id).await;
    assert_eq!((detail.record.status, detail.record.reason), (Status::Cancelled, Some(Reason::Operator)));
    assert_eq!((detail.record.cancel_requested, detail.record.handoff), (false, None));
    assert_eq!((detail.history.len(), detail.history[0].kind), (1, OutcomeKind::Cancelled));
    assert_eq!(detail.history[0].attempt, leased.attempt);
    assert_eq!(fx.lease(10).await, []);
}

async fn check_not_taken(fx: &Fixture, disposition: Disposition, status: Status) {
    let leased = requested(fx).await;
    assert_eq!(fx.settle(&leased, disposition).await, Settled::Applied(status));
    let record = fx.record(leased.envelope.id).await;
    assert_eq!((record.status, record.cancel_requested), (status, false));
}

async fn a_request_takes_a_retry(fx: &Fixture) {
    check_taken(fx, retry_in(0)).await;
}

async fn a_request_takes_a_release(fx: &Fixture) {
    check_taken(fx, Disposition::Release).await;
}

async fn a_request_takes_a_suspension(fx: &Fixture) {
    check_taken(fx, Disposition::Suspend(handoff())).await;
}

async fn a_request_takes_an_expiry(fx: &Fixture) {
    let requested = requested(fx).await;
    fx.accept(order()).await;
    let other = fx.lease_one().await;
    fx.advance(61);
    assert_eq!(fx.recover().await, Recovered { leases: 2, returned: 1, cancelled: 1 });
    let statuses = fx.statuses([requested.envelope.id, other.envelope.id]).await;
    assert_eq!(statuses, [Status::Cancelled, Status::Pending]);
}

async fn a_request_does_not_take_a_completion(fx: &Fixture) {
    check_not_taken(fx, Disposition::Complete, Status::Completed).await;
}

async fn a_request_does_not_take_a_dead_letter_or_a_skip(fx: &Fixture) {
    check_not_taken(fx, Disposition::DeadLetter { reason: Reason::Permanent }, Status::DeadLettered).await;
    check_not_taken(fx, Disposition::Skip { reason: Reason::Vetoed }, Status::Skipped).await;
}

async fn a_request_dies_with_its_attempt(fx: &Fixture) {
    let leased = requested(fx).await;
    fx.dead_letter(&leased).await;
    fx.change(Change::Requeue, [leased.envelope.id]).await;
    let again = fx.lease_one().await;
    assert!(!fx.record(again.envelope.id).await.cancel_requested);
    assert_eq!(fx.retry(&again, 0).await, Settled::Applied(Status::Pending));
}

async fn a_cancel_of_a_leased_message_changes_nothing_for_others_in_its_batch(fx: &Fixture) {
    fx.accept_all((0..3).map(|_| order())).await;
    let leased = fx.lease(3).await;
    fx.change(Change::Cancel, [leased[1].envelope.id]).await;
    let releases = leased.iter().map(|one| settlement(one, Disposition::Release)).collect();
    let answers = fx.exchange(releases, None).await.settled;
    let back = Settled::Applied(Status::Pending);
    assert_eq!(answers, [back, Settled::Applied(Status::Cancelled), back]);
    let cancelled = Filter { statuses: Some(vec![Status::Cancelled]), ..Filter::default() };
    assert_eq!(fx.find(cancelled).await, [leased[1].envelope.id]);
}
