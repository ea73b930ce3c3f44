//! The operations, and how often each is tried.

use super::draft::{Draft, ENDPOINTS, any_claim, any_draft, any_filter};
use crate::store::Claim;
use mailslot_core::store::{Change, Filter, RedriveAction, RetentionPolicy};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use std::time::Duration;

/// Chooses one of what there is, whatever its number.
pub(super) type Pick = usize;

/// More than there is of anything, so that each one has its chance.
const PICKS: Pick = 1_000;

/// One step of a case.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Append(Vec<Vec<Draft>>),
    Exchange { settle: Vec<Answer>, claim: Option<(bool, Claim)>, due_before: Option<i64> },
    Extend { leases: Vec<Pick>, seconds: u64 },
    Recover { limit: usize },
    Change { change: Change, filter: Filter, limit: usize },
    SettleHandoff { message: Pick, succeeds: bool },
    CreateRedrive { filter: Filter, rate: u32 },
    ActOnRedrive { redrive: Pick, action: RedriveAction },
    StepRedrives,
    Retain { endpoint: Option<&'static str>, policy: RetentionPolicy, limit: usize },
    PassTime { micros: i64 },
    Query { filter: Filter, newest_first: bool, size: usize },
    Get { message: Pick },
    Reopen,
}

/// A settlement of something that is or was leased.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) leased: Pick,
    pub(super) verdict: Verdict,
    pub(super) fence: Fence,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict {
    Complete,
    Retry { seconds: u64 },
    DeadLetter,
    Skip,
    Suspend,
    Release,
}

/// Whether the token is the right one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fence {
    Right,
    WrongOwner,
    WrongAttempt,
}

pub(super) fn any_op() -> impl Strategy<Value = Op> {
    let pick = || 0..PICKS;
    prop_oneof![
        8 => vec(vec(any_draft(), 1..4), 1..3).prop_map(Op::Append),
        14 => any_exchange(),
        2 => (vec(pick(), 1..4), 10u64..60).prop_map(|(leases, seconds)| Op::Extend { leases, seconds }),
        3 => (1usize..4).prop_map(|limit| Op::Recover { limit }),
        5 => (any_change(), any_filter(), 0usize..6)
            .prop_map(|(change, filter, limit)| Op::Change { change, filter, limit }),
        2 => (pick(), any::<bool>()).prop_map(|(message, succeeds)| Op::SettleHandoff { message, succeeds }),
        1 => (any_filter(), 1u32..4).prop_map(|(filter, rate)| Op::CreateRedrive { filter, rate }),
        1 => (pick(), any_action()).prop_map(|(redrive, action)| Op::ActOnRedrive { redrive, action }),
        2 => Just(Op::StepRedrives),
        2 => any_retention(),
        5 => any_time(),
        3 => (any_filter(), any::<bool>(), 1usize..8)
            .prop_map(|(filter, newest_first, size)| Op::Query { filter, newest_first, size }),
        1 => pick().prop_map(|message| Op::Get { message }),
        1 => Just(Op::Reopen),
    ]
}

fn any_exchange() -> impl Strategy<Value = Op> {
    let verdict = prop_oneof![
        4 => Just(Verdict::Complete),
        3 => (0u64..40).prop_map(|seconds| Verdict::Retry { seconds }),
        3 => Just(Verdict::DeadLetter),
        1 => Just(Verdict::Skip),
        1 => Just(Verdict::Suspend),
        1 => Just(Verdict::Release),
    ];
    let fence =
        prop_oneof![12 => Just(Fence::Right), 1 => Just(Fence::WrongOwner), 1 => Just(Fence::WrongAttempt)];
    let answer =
        (0..PICKS, verdict, fence).prop_map(|(leased, verdict, fence)| Answer { leased, verdict, fence });
    let claim = weighted(0.8, (any::<bool>(), any_claim()));
    (vec(answer, 0..4), claim, weighted(0.1, 0i64..60)).prop_map(|(settle, claim, due_before)| Op::Exchange {
        settle,
        claim,
        due_before,
    })
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => Just(Change::Requeue),
        2 => Just(Change::Skip),
        3 => Just(Change::Cancel),
        1 => Just(Change::Purge),
    ]
}

fn any_action() -> impl Strategy<Value = RedriveAction> {
    select(vec![RedriveAction::Pause, RedriveAction::Resume, RedriveAction::Cancel])
}

fn any_retention() -> impl Strategy<Value = Op> {
    let keep = || weighted(0.7, select(vec![0u64, 10, 60]).prop_map(Duration::from_secs));
    let policy =
        (keep(), keep(), keep(), keep()).prop_map(|(completed, skipped, cancelled, dead_lettered)| {
            RetentionPolicy { completed, skipped, cancelled, dead_lettered }
        });
    (weighted(0.3, select(&ENDPOINTS[..])), policy, 1usize..5)
        .prop_map(|(endpoint, policy, limit)| Op::Retain { endpoint, policy, limit })
}

fn any_time() -> impl Strategy<Value = Op> {
    let micros = prop_oneof![
        6 => 0i64..40_000_000,
        1 => Just(3_600_000_000i64),
        // A corrected clock.
        1 => -60_000_000i64..0,
    ];
    micros.prop_map(|micros| Op::PassTime { micros })
}
