//! Settling: what each verdict leaves behind.

use super::Fixture;
use super::verbs::{claim, handoff, ids, order, retry_in, settlement, settlement_with};
use jiff::{SignedDuration, Timestamp};
use mailslot_core::store::{MessageRecord, Settled};
use mailslot_core::{Attempt, Disposition, Handoff, OutcomeKind, OutcomeRecord, Reason, Settlement, Status};

cases![
    a_completed_message_has_an_end_and_no_reason,
    a_skipped_message_keeps_its_reason,
    a_dead_letter_keeps_its_reason_and_error,
    a_retried_message_waits_for_its_delay_with_its_error,
    a_retry_without_delay_can_be_leased_in_the_same_exchange,
    a_suspended_message_keeps_its_handoff,
    a_released_message_looks_as_if_it_was_never_leased,
    a_terminal_message_is_never_leased_again,
    the_next_outcome_replaces_reason_and_error,
    every_reason_reads_back,
    the_history_tells_every_attempt_in_order,
    a_batch_settles_each_message_on_its_own,
];

/// Leases an order at once, settles it ten seconds later, and gives what the store knows of it then.
async fn settled(fx: &Fixture, disposition: Disposition, error: &str) -> (MessageRecord, Vec<OutcomeRecord>) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(10);
    let answers = fx.exchange(vec![settlement_with(&leased, disposition, error)], None).await.settled;
    let detail = fx.detail(leased.envelope.id).await;
    assert_eq!(answers, [Settled::Applied(detail.record.status)]);
    (detail.record, detail.history)
}

fn check_end(fx: &Fixture, record: &MessageRecord, status: Status, reason: Option<Reason>) {
    assert_eq!((record.status, record.reason), (status, reason));
    assert_eq!((record.ended_at, record.due_at), (Some(fx.now()), None));
    assert_eq!((&record.leased_by, record.leased_until), (&None, None));
    assert_eq!(record.attempt, Attempt { generation: 0, number: 1 });
}

fn check_outcome(fx: &Fixture, history: &[OutcomeRecord], kind: OutcomeKind, reason: Option<Reason>) {
    assert_eq!(history.len(), 1);
    let outcome = &history[0];
    assert_eq!((outcome.kind, outcome.reason, outcome.at), (kind, reason, fx.now()));
    assert_eq!(outcome.attempt, Attempt { generation: 0, number: 1 });
}

async fn a_completed_message_has_an_end_and_no_reason(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(10);
    assert_eq!(fx.complete(&leased).await, Settled::Applied(Status::Completed));
    let detail = fx.detail(leased.envelope.id).await;
    check_end(fx, &detail.record, Status::Completed, None);
    check_outcome(fx, &detail.history, OutcomeKind::Completed, None);
    assert_eq!((&detail.record.error, &detail.history[0].error), (&None, &None));
}

async fn a_skipped_message_keeps_its_reason(fx: &Fixture) {
    let (record, history) = settled(fx, Disposition::Skip { reason: Reason::Vetoed }, "not today").await;
    check_end(fx, &record, Status::Skipped, Some(Reason::Vetoed));
    check_outcome(fx, &history, OutcomeKind::Skipped, Some(Reason::Vetoed));
}

async fn a_dead_letter_keeps_its_reason_and_error(fx: &Fixture) {
    let reason = Reason::Undecodable;
    let (record, history) = settled(fx, Disposition::DeadLetter { reason }, "line 1, column 2").await;
    check_end(fx, &record, Status::DeadLettered, Some(reason));
    check_outcome(fx, &history, OutcomeKind::DeadLettered, Some(reason));
    assert_eq!(record.error.expect("kept").as_str(), "line 1, column 2");
    assert_eq!(history[0].error.as_ref().expect("kept").as_str(), "line 1, column 2");
}

async fn a_retried_message_waits_for_its_delay_with_its_error(fx: &Fixture) {
    let (record, history) = settled(fx, retry_in(30), "connection refused").await;
    assert_eq!((record.status, record.reason), (Status::Pending, Some(Reason::Failed)));
    assert_eq!((record.due_at, record.ended_at), (Some(fx.after(30)), None));
    assert_eq!(record.error.expect("kept").as_str(), "connection refused");
    check_outcome(fx, &history, OutcomeKind::Retried, Some(Reason::Failed));
    fx.advance(29);
    assert_eq!(fx.lease(1).await, []);
    fx.advance(1);
    assert_eq!(fx.lease_one().await.attempt, Attempt { generation: 0, number: 2 });
}

async fn a_retry_without_delay_can_be_leased_in_the_same_exchange(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    let leased = fx.lease_one().await;
    let exchanged = fx.exchange(vec![settlement(&leased, retry_in(0))], Some(claim("order"))).await;
    assert_eq!(exchanged.settled, [Settled::Applied(Status::Pending)]);
    assert_eq!(ids(&exchanged.leased), [id]);
    assert_eq!(exchanged.leased[0].attempt.number, 2);
}

async fn a_suspended_message_keeps_its_handoff(fx: &Fixture) {
    let expected_by = fx.after(86_400);
    let handoff: Handoff = handoff().external_job_id("job 12").expected_by(expected_by);
    let (record, history) = settled(fx, Disposition::Suspend(handoff.clone()), "").await;
    assert_eq!((record.status, record.handoff), (Status::Suspended, Some(handoff)));
    assert_eq!((record.ended_at, record.due_at, record.leased_until), (None, None, None));
    check_outcome(fx, &history, OutcomeKind::Suspended, None);
}

async fn a_released_message_looks_as_if_it_was_never_leased(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.advance(10);
    assert_eq!(fx.release(&leased).await, Settled::Applied(Status::Pending));
    let detail = fx.detail(leased.envelope.id).await;
    assert_eq!((detail.record.attempt, detail.history.as_slice()), (Attempt::FIRST, &[][..]));
    assert_eq!((detail.record.due_at, detail.record.reason), (Some(fx.now()), None));
}

async fn a_terminal_message_is_never_leased_again(fx: &Fixture) {
    for status in Status::ALL.iter().copied().filter(|status| status.is_terminal()) {
        fx.place(order(), status).await;
    }
    fx.advance(7 * 24 * 3_600);
    fx.recover().await;
    assert_eq!(fx.lease(10).await, []);
}

async fn the_next_outcome_replaces_reason_and_error(fx: &Fixture) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.exchange(vec![settlement_with(&leased, retry_in(0), "first")], None).await;
    let leased = fx.lease_one().await;
    let leased_record = fx.record(leased.envelope.id).await;
    assert_eq!(leased_record.error.expect("that of the last attempt").as_str(), "first");
    fx.complete(&leased).await;
    let record = fx.record(leased.envelope.id).await;
    assert_eq!((record.reason, record.error), (None, None));
}

async fn every_reason_reads_back(fx: &Fixture) {
    for &reason in Reason::ALL {
        let id = fx.accept(order()).await.id;
        fx.settle(&fx.lease_one().await, Disposition::DeadLetter { reason }).await;
        assert_eq!(fx.record(id).await.reason, Some(reason));
    }
}

async fn the_history_tells_every_attempt_in_order(fx: &Fixture) {
    let start: Timestamp = fx.now();
    let id = fx.accept(order()).await.id;
    for error in ["one", "two"] {
        fx.advance(10);
        let leased = fx.lease_one().await;
        fx.exchange(vec![settlement_with(&leased, retry_in(0), error)], None).await;
    }
    fx.advance(10);
    fx.release(&fx.lease_one().await).await;
    fx.complete(&fx.lease_one().await).await;
    let told: Vec<_> = fx
        .history(id)
        .await
        .into_iter()
        .map(|o| (o.kind, o.attempt.number, o.error.map(String::from), o.at.duration_since(start)))
        .collect();
    let seconds = SignedDuration::from_secs;
    assert_eq!(
        told,
        [
            (OutcomeKind::Retried, 1, Some("one".to_owned()), seconds(10)),
            (OutcomeKind::Retried, 2, Some("two".to_owned()), seconds(20)),
            (OutcomeKind::Completed, 3, None, seconds(30)),
        ]
    );
}

async fn a_batch_settles_each_message_on_its_own(fx: &Fixture) {
    let accepted = fx.accept_all((0..6).map(|_| order())).await;
    let leased = fx.lease(6).await;
    let verdicts = [
        (Disposition::Complete, Status::Completed),
        (retry_in(5), Status::Pending),
        (Disposition::DeadLetter { reason: Reason::Permanent }, Status::DeadLettered),
        (Disposition::Skip { reason: Reason::Discarded }, Status::Skipped),
        (Disposition::Suspend(handoff()), Status::Suspended),
        (Disposition::Release, Status::Pending),
    ];
    let settlements: Vec<Settlement> = leased
        .iter()
        .zip(&verdicts)
        .map(|(leased, (verdict, _))| settlement(leased, verdict.clone()))
        .collect();
    // Against the order of the claim, so that answers by place and answers by message differ.
    let answers = fx.exchange(settlements.into_iter().rev().collect(), None).await.settled;
    for ((id, answer), (_, status)) in accepted.into_iter().zip(answers.into_iter().rev()).zip(verdicts) {
        assert_eq!(answer, Settled::Applied(status));
        assert_eq!(fx.status(id).await, status);
    }
}
