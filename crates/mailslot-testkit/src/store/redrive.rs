//! Redrives: dead letters requeued at a pace.

use super::Fixture;
use super::verbs::{done, ids, order, tenant};
use mailslot_core::store::{
    Filter, REDRIVE_RATE_MAX, Redrive, RedriveAction, RedriveId, RedriveSpec, RedriveState,
};
use mailslot_core::{Attempt, MessageId, OutcomeKind, Status, StoreErrorKind};

cases![
    a_redrive_says_how_many_it_will_take,
    a_redrive_keeps_its_pace,
    a_redrive_takes_the_oldest_first,
    a_redrive_begins_at_once_even_when_slow,
    a_redrive_is_done_when_it_passed_everything,
    a_redrive_of_nothing_is_done_with_its_first_step,
    a_redrive_takes_only_what_matches,
    a_redrive_takes_dead_letters_whatever_its_filter_says,
    a_redrive_takes_only_what_was_accepted_before_it,
    a_redrive_takes_nothing_twice,
    a_paused_redrive_waits_and_a_resumed_one_goes_on,
    the_time_of_a_pause_gives_no_allowance,
    a_cancelled_redrive_stays_cancelled,
    an_action_on_an_ended_redrive_changes_nothing,
    an_unknown_redrive_is_none,
    several_redrives_run_side_by_side_and_are_listed_newest_first,
    a_redrive_out_of_bounds_is_refused,
    a_redriven_message_starts_a_new_generation,
];

async fn dead_letters(fx: &Fixture, number: usize) -> Vec<MessageId> {
    let accepted = fx.accept_all((0..number).map(|_| order())).await;
    for leased in fx.lease(number).await {
        fx.dead_letter(&leased).await;
    }
    accepted
}

async fn start(fx: &Fixture, rate: u32) -> Redrive {
    start_of(fx, Filter::default(), rate).await
}

async fn start_of(fx: &Fixture, filter: Filter, rate: u32) -> Redrive {
    done(fx.store.create_redrive(RedriveSpec { filter, rate }).await)
}

async fn step(fx: &Fixture) -> Vec<Redrive> {
    done(fx.store.step_redrives().await)
}

async fn act(fx: &Fixture, id: RedriveId, action: RedriveAction) -> Redrive {
    done(fx.store.act_on_redrive(id, action).await).expect("it is known")
}

async fn pending(fx: &Fixture) -> Vec<MessageId> {
    fx.find(Filter { statuses: Some(vec![Status::Pending]), ..Filter::default() }).await
}

async fn a_redrive_says_how_many_it_will_take(fx: &Fixture) {
    dead_letters(fx, 3).await;
    fx.accept(order()).await;
    let redrive = start(fx, 10).await;
    assert_eq!((redrive.total, redrive.requeued, redrive.state), (3, 0, RedriveState::Running));
    assert_eq!((redrive.created_at, redrive.updated_at), (fx.now(), fx.now()));
    assert_eq!(redrive.spec, RedriveSpec { filter: Filter::default(), rate: 10 });
    assert_eq!(done(fx.store.redrives().await), [redrive]);
}

async fn a_redrive_keeps_its_pace(fx: &Fixture) {
    dead_letters(fx, 30).await;
    start(fx, 4).await;
    assert_eq!(step(fx).await[0].requeued, 4);
    assert_eq!(step(fx).await, []);
    fx.clock.advance(jiff::SignedDuration::from_millis(500));
    assert_eq!(step(fx).await[0].requeued, 6);
    fx.advance(3);
    let moved = step(fx).await;
    assert_eq!((moved[0].requeued, moved[0].updated_at), (18, fx.now()));
    assert_eq!(pending(fx).await.len(), 18);
    assert_eq!(done(fx.store.redrives().await), moved);
}

async fn a_redrive_takes_the_oldest_first(fx: &Fixture) {
    let dead = dead_letters(fx, 4).await;
    start(fx, 2).await;
    step(fx).await;
    assert_eq!(ids(&fx.lease(10).await), dead[..2]);
}

async fn a_redrive_begins_at_once_even_when_slow(fx: &Fixture) {
    dead_letters(fx, 2).await;
    start(fx, 1).await;
    assert_eq!(step(fx).await[0].requeued, 1);
}

async fn a_redrive_is_done_when_it_passed_everything(fx: &Fixture) {
    dead_letters(fx, 3).await;
    start(fx, 10).await;
    let moved = step(fx).await;
    assert_eq!((moved[0].requeued, moved[0].state), (3, RedriveState::Done));
    fx.advance(10);
    assert_eq!(step(fx).await, []);
}

async fn a_redrive_of_nothing_is_done_with_its_first_step(fx: &Fixture) {
    start(fx, 10).await;
    let moved = step(fx).await;
    assert_eq!((moved[0].requeued, moved[0].state), (0, RedriveState::Done));
}

async fn a_redrive_takes_only_what_matches(fx: &Fixture) {
    fx.place(order().tenant("umbrella"), Status::DeadLettered).await;
    let wanted = fx.place(order().tenant("acme"), Status::DeadLettered).await.id;
    let filter = Filter { tenant: Some(tenant("acme")), ..Filter::default() };
    assert_eq!(start_of(fx, filter, 10).await.total, 1);
    step(fx).await;
    assert_eq!(pending(fx).await, [wanted]);
}

async fn a_redrive_takes_dead_letters_whatever_its_filter_says(fx: &Fixture) {
    let dead = dead_letters(fx, 1).await;
    let completed = fx.place(order(), Status::Completed).await.id;
    let filter = Filter { statuses: Some(vec![Status::Completed]), ..Filter::default() };
    assert_eq!(start_of(fx, filter, 10).await.total, 1);
    step(fx).await;
    assert_eq!(pending(fx).await, dead);
    assert_eq!(fx.status(completed).await, Status::Completed);
}

async fn a_redrive_takes_only_what_was_accepted_before_it(fx: &Fixture) {
    let dead = dead_letters(fx, 1).await;
    start(fx, 10).await;
    let later = fx.place(order(), Status::DeadLettered).await.id;
    step(fx).await;
    assert_eq!(pending(fx).await, dead);
    assert_eq!(fx.status(later).await, Status::DeadLettered);
}

async fn a_redrive_takes_nothing_twice(fx: &Fixture) {
    let dead = dead_letters(fx, 2).await;
    start(fx, 1).await;
    step(fx).await;
    fx.dead_letter(&fx.lease_one().await).await;
    fx.advance(10);
    assert_eq!(step(fx).await[0].state, RedriveState::Done);
    assert_eq!(pending(fx).await, dead[1..]);
}

async fn a_paused_redrive_waits_and_a_resumed_one_goes_on(fx: &Fixture) {
    dead_letters(fx, 5).await;
    let id = start(fx, 2).await.id;
    step(fx).await;
    assert_eq!(act(fx, id, RedriveAction::Pause).await.state, RedriveState::Paused);
    fx.advance(10);
    assert_eq!(step(fx).await, []);
    assert_eq!(act(fx, id, RedriveAction::Resume).await.state, RedriveState::Running);
    fx.advance(1);
    assert_eq!(step(fx).await[0].requeued, 4);
}

async fn the_time_of_a_pause_gives_no_allowance(fx: &Fixture) {
    dead_letters(fx, 100).await;
    let id = start(fx, 2).await.id;
    step(fx).await;
    act(fx, id, RedriveAction::Pause).await;
    fx.advance(3_600);
    act(fx, id, RedriveAction::Resume).await;
    assert_eq!(step(fx).await, []);
}

async fn a_cancelled_redrive_stays_cancelled(fx: &Fixture) {
    dead_letters(fx, 5).await;
    let id = start(fx, 2).await.id;
    step(fx).await;
    let cancelled = act(fx, id, RedriveAction::Cancel).await;
    assert_eq!((cancelled.state, cancelled.requeued), (RedriveState::Cancelled, 2));
    fx.advance(10);
    assert_eq!(act(fx, id, RedriveAction::Resume).await.state, RedriveState::Cancelled);
    assert_eq!(step(fx).await, []);
    assert_eq!(pending(fx).await.len(), 2);
}

async fn an_action_on_an_ended_redrive_changes_nothing(fx: &Fixture) {
    let id = start(fx, 2).await.id;
    let ended = step(fx).await.remove(0);
    fx.advance(10);
    for action in [RedriveAction::Pause, RedriveAction::Resume, RedriveAction::Cancel] {
        assert_eq!(act(fx, id, action).await, ended);
    }
}

async fn an_unknown_redrive_is_none(fx: &Fixture) {
    for id in [RedriveId(0), RedriveId(-1), RedriveId(i64::MAX)] {
        assert_eq!(done(fx.store.act_on_redrive(id, RedriveAction::Cancel).await), None);
    }
}

async fn several_redrives_run_side_by_side_and_are_listed_newest_first(fx: &Fixture) {
    for name in ["acme", "umbrella"] {
        for _ in 0..4 {
            fx.place(order().tenant(name), Status::DeadLettered).await;
        }
    }
    let of = |name| Filter { tenant: Some(tenant(name)), ..Filter::default() };
    let slow = start_of(fx, of("acme"), 1).await.id;
    let quick = start_of(fx, of("umbrella"), 2).await.id;
    step(fx).await;
    let listed: Vec<_> = done(fx.store.redrives().await).iter().map(|r| (r.id, r.requeued)).collect();
    assert_eq!(listed, [(quick, 2), (slow, 1)]);
    assert_eq!(pending(fx).await.len(), 3);
}

async fn a_redrive_out_of_bounds_is_refused(fx: &Fixture) {
    for rate in [0, REDRIVE_RATE_MAX + 1] {
        let spec = RedriveSpec { filter: Filter::default(), rate };
        let error = fx.store.create_redrive(spec).await.expect_err("out of bounds");
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
    }
    assert_eq!(done(fx.store.redrives().await), []);
}

async fn a_redriven_message_starts_a_new_generation(fx: &Fixture) {
    let id = dead_letters(fx, 1).await[0];
    start(fx, 1).await;
    step(fx).await;
    assert_eq!(fx.record(id).await.attempt, Attempt { generation: 1, number: 0 });
    assert_eq!(fx.history(id).await[1].kind, OutcomeKind::Requeued);
    assert_eq!(fx.lease_one().await.attempt, Attempt { generation: 1, number: 1 });
}
