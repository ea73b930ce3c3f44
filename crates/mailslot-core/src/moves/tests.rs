//! What moves are gathered for each thing that can happen.

use super::*;
use crate::store::{Change, HandoffResult, LaneRequest, LeaseRequest, LeaseToken, Owner, Recovered, Settled};
use crate::stored::{Read, UNTIL_FINISHED, UNTIL_STARTED, code_of_kind, id_of_place};
use crate::{
    Attempt, ContentType, Contract, Disposition, EndpointName, Envelope, ErrorText, Handoff, Headers,
    OutcomeKind, Payload, Priority, Reason, Seq, Settlement, Status, Trace,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use uuid::Uuid;

const HEAD: Slot = Slot {
    seq: 5,
    lane: 1,
    priority: 1,
    generation: 0,
    attempt: 2,
    session: Some(5),
    key_policy: UNTIL_FINISHED,
};

fn moves() -> Moves {
    Moves::at(Timestamp::UNIX_EPOCH)
}

fn leased() -> Member {
    Member { slot: HEAD, lease: 7, cancel_requested: false }
}

fn settle(member: Member, disposition: Disposition) -> (Moves, Vec<Settled>, BTreeSet<i64>) {
    let owner = Uuid::from_u128(1);
    let lease = LeaseToken { owner, generation: 7 };
    let settlement = Settlement { lease, seq: Seq(5), attempt: HEAD.attempt(), disposition, error: None };
    let mut moves = moves();
    let mut held = Held::new([(7, owner)], [member]);
    let (settled, leases) = held.settle(vec![settlement.clone(), settlement], &mut moves);
    (moves, settled, leases)
}

fn tally(mut moves: Moves) -> BTreeMap<Status, i64> {
    moves.take_tally().map(|((_, status), by)| (status, by)).collect()
}

#[test]
fn a_success_leaves_its_place_and_hands_on_its_session_and_key() {
    let (moves, settled, leases) = settle(leased(), Disposition::Complete);
    assert_eq!(settled, [Settled::Applied(Status::Completed), Settled::LeaseLost], "once only");
    assert_eq!(leases, BTreeSet::from([7]));
    assert_eq!((&moves.completed, moves.outcomes.len()), (&vec![HEAD], 0));
    assert_eq!(moves.leaving, BTreeMap::from([(Status::Leased, vec![HEAD])]));
    assert_eq!((&moves.released, &moves.freed), (&vec![(5, 5)], &vec![5]));
    assert!(!moves.woke());
    assert_eq!(tally(moves), BTreeMap::from([(Status::Leased, -1), (Status::Completed, 1)]));
}

#[test]
fn a_dead_letter_holds_its_session_and_key() {
    let (moves, ..) = settle(leased(), Disposition::DeadLetter { reason: Reason::Permanent });
    assert_eq!((moves.released.len(), moves.freed.len(), moves.completed.len()), (0, 0, 0));
    let outcome = &moves.outcomes[0];
    assert_eq!((outcome.kind, outcome.is_end), (code_of_kind(OutcomeKind::DeadLettered), true));
    assert_eq!((outcome.seq, outcome.attempt, outcome.reason), (5, 2, Some("permanent")));
}

#[test]
fn a_retry_is_due_later_and_a_release_gives_its_attempt_back() {
    let after = Duration::from_secs(3);
    let (moves, ..) = settle(leased(), Disposition::Retry { after, reason: Reason::Failed });
    assert_eq!(moves.ready, [(HEAD, 3_000_000)]);
    assert_eq!((moves.outcomes[0].is_end, moves.woke()), (false, true));
    assert_eq!(tally(moves), BTreeMap::from([(Status::Leased, -1), (Status::Pending, 1)]));
    let (moves, ..) = settle(leased(), Disposition::Release);
    assert_eq!(moves.ready, [(Slot { attempt: 1, ..HEAD }, 0)]);
    assert!(moves.outcomes.is_empty());
}

#[test]
fn a_suspended_message_waits_until_it_is_settled_from_outside() {
    let handoff = Handoff::new("waits for the bank").unwrap();
    let (moves, ..) = settle(leased(), Disposition::Suspend(handoff.clone()));
    let (slot, json) = &moves.suspended[0];
    assert_eq!((*slot, serde_json::from_str::<Handoff>(json).unwrap()), (HEAD, handoff));
    let mut moves = self::moves();
    moves.settle_handoff(&HEAD, HandoffResult::Completed);
    moves.settle_handoff(&HEAD, HandoffResult::Failed(ErrorText::new("refused")));
    let ends: Vec<_> = moves.outcomes.iter().map(|row| (row.reason, row.error.as_deref())).collect();
    assert_eq!(ends, [(None, None), (Some("handoff_failed"), Some("refused"))]);
    assert_eq!(moves.leaving[&Status::Suspended], [HEAD, HEAD]);
    assert_eq!(moves.released, [(5, 5)], "the failed one holds its session");
}

#[test]
fn another_lease_owner_or_attempt_settles_nothing() {
    let owner = Uuid::from_u128(1);
    let token = LeaseToken { owner, generation: 7 };
    let settlement = |lease, attempt| Settlement {
        lease,
        seq: Seq(5),
        attempt,
        disposition: Disposition::Complete,
        error: None,
    };
    let stale = [
        settlement(LeaseToken { generation: 8, ..token }, HEAD.attempt()),
        settlement(LeaseToken { owner: Uuid::from_u128(2), ..token }, HEAD.attempt()),
        settlement(token, Attempt { number: 1, ..HEAD.attempt() }),
    ];
    let mut moves = moves();
    let (settled, leases) = Held::new([(7, owner), (8, owner)], [leased()]).settle(stale.into(), &mut moves);
    assert_eq!(settled, [Settled::LeaseLost; 3]);
    assert!(leases.is_empty() && moves.leaving.is_empty() && moves.tally.is_empty());
}

#[test]
fn a_lease_that_ran_out_returns_its_message_or_cancels_it() {
    let mut moves = moves();
    let mut recovered = Recovered::default();
    moves.take_back(&leased(), &mut recovered);
    moves.take_back(&Member { cancel_requested: true, ..leased() }, &mut recovered);
    assert_eq!((recovered.returned, recovered.cancelled), (1, 1));
    let kinds: Vec<_> = moves.outcomes.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [OutcomeKind::Expired, OutcomeKind::Cancelled].map(code_of_kind));
    assert_eq!(moves.ready, [(HEAD, 0)], "the attempt counts");
}

#[test]
fn changes_do_what_operators_ask() {
    let changed = |change, from| {
        let mut moves = moves();
        let ask = moves.change(change, &HEAD, from);
        (moves, ask)
    };
    let (moves, ask) = changed(Change::Cancel, Status::Leased);
    assert!(ask && moves.leaving.is_empty(), "its worker is asked");
    let (moves, ask) = changed(Change::Cancel, Status::Parked);
    assert!(!ask && moves.released.is_empty(), "one that waited was no head");
    let (moves, _) = changed(Change::Cancel, Status::Pending);
    assert_eq!((moves.released, moves.outcomes[0].generation), (vec![(5, 5)], 0));
    let (moves, _) = changed(Change::Skip, Status::DeadLettered);
    assert_eq!((moves.released, moves.outcomes[0].generation), (vec![(5, 5)], 1));
    let (moves, _) = changed(Change::Requeue, Status::DeadLettered);
    assert_eq!(moves.ready, [(Slot { generation: 1, attempt: 0, ..HEAD }, 0)]);
    assert_eq!(moves.leaving, BTreeMap::from([(Status::DeadLettered, vec![HEAD])]));
    let (moves, _) = changed(Change::Purge, Status::Completed);
    assert_eq!((moves.released.len(), moves.outcomes.len()), (1, 0));
    assert_eq!(tally(moves), BTreeMap::from([(Status::Completed, -1)]));
}

fn request() -> LeaseRequest {
    let contract = Contract::new("test.moves", 1).unwrap();
    let lane = LaneRequest { endpoint: EndpointName::default(), contract, attempts_max: 4 };
    LeaseRequest {
        owner: Owner::new("test").unwrap(),
        lanes: vec![lane],
        limit: 10,
        duration: Duration::from_secs(30),
        tenant: None,
        due_until: None,
    }
}

fn due(seq: i64, attempt: u32) -> Due {
    Due { slot: Slot { seq, attempt, ..HEAD }, due_at: Timestamp::UNIX_EPOCH, lane_index: 0 }
}

fn read(defect: Option<&'static str>) -> Read<Envelope> {
    let lane = request().lanes.remove(0);
    let value = Envelope {
        seq: Seq(5),
        id: id_of_place(99),
        endpoint: lane.endpoint,
        contract: lane.contract,
        payload: Payload::new("{}", ContentType::default()).unwrap(),
        tenant: None,
        session: None,
        idempotency_key: None,
        trace: Trace::None,
        priority: Priority::Normal,
        headers: Headers::default(),
        accepted_at: Timestamp::UNIX_EPOCH,
    };
    Read { value, defect }
}

#[test]
fn a_claim_leases_what_can_run_and_refuses_the_rest() {
    let claim = |due: Due, envelope| {
        let mut moves = moves();
        let claimed = moves.claim(&due, envelope, &request()).map(|(slot, _)| slot);
        (claimed, moves)
    };
    let until_started = Due { slot: Slot { key_policy: UNTIL_STARTED, ..HEAD }, ..due(5, 2) };
    let (claimed, moves) = claim(until_started, Some(read(None)));
    assert_eq!(claimed.map(|slot| slot.attempt), Ok(3));
    assert_eq!(moves.freed, [5], "its key protects only until it starts");
    assert_eq!(tally(moves), BTreeMap::from([(Status::Pending, -1), (Status::Leased, 1)]));
    for (due, envelope, id, reason) in [
        (due(5, 4), Some(read(None)), id_of_place(99), "crashed"),
        (due(5, 0), Some(read(Some("headers"))), id_of_place(99), "undecodable"),
        (due(5, 0), None, id_of_place(5), "undecodable"),
    ] {
        let (claimed, moves) = claim(due, envelope);
        assert_eq!((claimed, moves.outcomes[0].reason), (Err(id), Some(reason)));
        assert_eq!(tally(moves), BTreeMap::from([(Status::Pending, -1), (Status::DeadLettered, 1)]));
    }
}

#[test]
fn only_messages_that_may_be_suspect_are_looked_up() {
    let mut window = DueWindow::new(10);
    for (seq, attempt) in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)] {
        window.push(due(seq, attempt));
    }
    let tried: BTreeSet<_> = window.tried(&request()).iter().map(|slot| slot.seq).collect();
    assert_eq!(tried, BTreeSet::from([3, 4]), "too new, or dead-lettered anyway");
}

#[test]
fn suspects_that_fill_a_window_ask_for_a_wider_one() {
    let picked = |window: usize, found: i64| {
        let mut due_window = DueWindow::new(window);
        for seq in 1..=found {
            due_window.push(due(seq, 2));
        }
        due_window.mark_suspects(&(1..=found).collect());
        due_window.pick(2, true)
    };
    assert_eq!(picked(2, 2), Window::Wider(8));
    assert_eq!(picked(8, 2), Window::Picked { due: Vec::new(), held_back: 2 }, "there are no more");
}

#[test]
fn a_window_is_full_when_one_class_of_it_is() {
    let mut window = DueWindow::new(2);
    window.push(due(1, 2));
    window.push(Due { slot: Slot { priority: 2, ..due(9, 2).slot }, ..due(9, 2) });
    window.mark_suspects(&[1, 9].into());
    assert_eq!(window.pick(2, true), Window::Picked { due: Vec::new(), held_back: 2 });
}
