//! Sessions under a concurrent worker.

use super::bench::{Bench, Worker, fine, start};
use super::script::{Order, Run, Runs, scripted};
use mailslot_core::store::Filter;
use mailslot_core::{Context, HandlerError, MessageId, Status, Verdict};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

cases![
    messages_of_a_session_run_in_order_and_one_at_a_time,
    sessions_run_side_by_side,
    a_failing_head_is_tried_again_in_its_place,
    a_dead_head_blocks_its_session_and_no_other,
    a_requeued_head_runs_before_those_behind_it,
    a_skipped_head_lets_its_session_go_on,
    a_suspended_head_blocks_until_its_handoff_ends,
];

#[derive(Debug, Default)]
struct Track {
    running: HashMap<String, u32>,
    seen: HashMap<String, Vec<u32>>,
}

async fn messages_of_a_session_run_in_order_and_one_at_a_time(b: &Bench) {
    let track = Arc::new(Mutex::new(Track::default()));
    let handler = {
        let track = Arc::clone(&track);
        move |order: Order, context: Context| {
            let track = Arc::clone(&track);
            async move {
                let session = context.envelope().session.clone().expect("all have one").to_string();
                {
                    let mut track = fine(track.lock());
                    let running = track.running.entry(session.clone()).or_default();
                    *running += 1;
                    assert_eq!(*running, 1, "one at a time");
                    track.seen.entry(session.clone()).or_default().push(order.number);
                }
                for _ in 0..order.number % 4 {
                    tokio::task::yield_now().await;
                }
                *fine(track.lock()).running.get_mut(&session).expect("it runs") -= 1;
            }
        }
    };
    let worker = start(b.builder().handler(handler));
    for number in 0..60 {
        worker.order_in(&format!("s{}", number % 3), number).await;
    }
    let stats = worker.until(|stats| stats.completed == 60).await;
    assert_eq!(stats.retried, 0, "no handler panicked");
    worker.stop().await;
    let track = fine(track.lock());
    for session in 0..3 {
        let expected: Vec<_> = (0..60).filter(|number| number % 3 == session).collect();
        assert_eq!(track.seen[&format!("s{session}")], expected);
    }
}

async fn sessions_run_side_by_side(b: &Bench) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    for session in ["a", "b", "c"] {
        worker.order_in(session, 1).await;
        worker.order_in(session, 2).await;
    }
    let first = runs.take(3).await;
    assert!(first.iter().all(|run| run.order.number == 1));
    first.into_iter().for_each(Run::complete);
    let second = runs.take(3).await;
    assert!(second.iter().all(|run| run.order.number == 2));
    second.into_iter().for_each(Run::complete);
    worker.until(|stats| stats.completed == 6).await;
    worker.stop().await;
}

/// A worker on a session of three orders, whose head ends so, beside another session that runs.
async fn with_head(b: &Bench, head: impl Into<Verdict>) -> (Worker, Runs, [MessageId; 3]) {
    let (handler, mut runs) = scripted();
    let worker = start(b.builder().handler(handler));
    let ids = [worker.order_in("s", 1).await, worker.order_in("s", 2).await, worker.order_in("s", 3).await];
    runs.next().await.end(head.into());
    let other = worker.order_in("other", 9).await;
    let run = runs.next().await;
    assert_eq!(run.id(), other, "the other session runs");
    run.complete();
    worker.drain().await;
    assert!(runs.is_empty());
    assert_eq!([b.status(ids[1]).await, b.status(ids[2]).await], [Status::Parked; 2]);
    (worker, runs, ids)
}

/// The session runs to its end, in this order.
async fn runs_on(worker: Worker, mut runs: Runs, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        let run = runs.next().await;
        assert_eq!(run.order.number, number);
        run.complete();
    }
    worker.drain().await;
    worker.stop().await;
}

async fn a_failing_head_is_tried_again_in_its_place(b: &Bench) {
    let (worker, runs, ids) = with_head(b, HandlerError::retryable("closed")).await;
    assert_eq!(b.status(ids[0]).await, Status::Pending);
    b.pass_retry(&worker);
    runs_on(worker, runs, [1, 2, 3]).await;
    assert_eq!(b.statuses(ids).await, [Status::Completed; 3]);
}

async fn a_dead_head_blocks_its_session_and_no_other(b: &Bench) {
    let (worker, _runs, ids) = with_head(b, Verdict::dead_letter("broken")).await;
    let sessions = fine(worker.operator().sessions(true, 10).await);
    let [session] = &sessions[..] else { panic!("expected one blocked session: {sessions:?}") };
    assert_eq!((session.head, session.head_status, session.parked), (ids[0], Status::DeadLettered, 2));
    worker.stop().await;
}

async fn a_requeued_head_runs_before_those_behind_it(b: &Bench) {
    let (worker, runs, ids) = with_head(b, Verdict::dead_letter("broken")).await;
    assert_eq!(fine(worker.operator().requeue(&Filter::of_ids(ids)).await).changed, 1);
    runs_on(worker, runs, [1, 2, 3]).await;
    assert_eq!(b.statuses(ids).await, [Status::Completed; 3]);
}

async fn a_skipped_head_lets_its_session_go_on(b: &Bench) {
    let (worker, runs, ids) = with_head(b, Verdict::dead_letter("broken")).await;
    assert_eq!(fine(worker.operator().skip(&Filter::of_ids(ids)).await).changed, 1);
    runs_on(worker, runs, [2, 3]).await;
    assert_eq!(b.statuses(ids).await, [Status::Skipped, Status::Completed, Status::Completed]);
}

async fn a_suspended_head_blocks_until_its_handoff_ends(b: &Bench) {
    let handoff = fine(mailslot_core::Handoff::new("waits for the bank"));
    let (worker, runs, ids) = with_head(b, handoff).await;
    assert!(fine(worker.operator().complete_handoff(ids[0]).await));
    runs_on(worker, runs, [2, 3]).await;
    assert_eq!(b.statuses(ids).await, [Status::Completed; 3]);
}
