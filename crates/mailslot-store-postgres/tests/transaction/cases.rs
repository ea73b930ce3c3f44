//! What must hold for every driver.

use crate::bench::{Bench, Place, order, stored};
use crate::driver::{Accept, Driver, End, Step, Taken};
use libtest_mimic::{Failed, Trial};
use mailslot_core::store::{AppendGroup, Appended};
use mailslot_core::{AcceptOutcome, NewMessage, Priority, Status, StoreErrorKind};
use mailslot_engine::{AcceptError, Inbox, WorkerConfig};
use mailslot_testkit::engine::Order;
use mailslot_testkit::message::message;
use std::time::Duration;

/// More than any case takes on a busy machine.
const CASE_TIME_MAX: Duration = Duration::from_secs(60);

macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        /// A trial of each case for a driver.
        pub(crate) fn trials<D: Driver>(place: Place) -> Vec<Trial> {
            vec![$(
                trial(D::NAME, place, stringify!($case), async |b| $case::<D>(b).await)
            ),+]
        }
    };
}

cases![
    what_is_committed_is_there,
    what_is_rolled_back_is_gone,
    a_known_key_is_answered_and_the_transaction_goes_on,
    a_key_is_known_in_its_own_transaction,
    other_content_under_a_known_key_is_a_conflict_and_the_transaction_goes_on,
    a_strict_accept_takes_new_messages_only,
    messages_of_a_session_wait_behind_its_head,
    a_batch_is_stored_as_it_was_given,
    a_conflict_keeps_its_group_out_and_no_other,
    too_many_messages_are_refused_before_anything_is_sent,
    an_accept_outside_of_a_transaction_is_refused,
    an_accept_in_a_failed_transaction_is_refused,
    an_accept_that_waits_for_too_long_may_be_tried_again,
    an_accept_without_the_tables_says_what_is_missing,
    a_first_accept_of_its_contract_holds_up_nobody_else,
    a_missing_partition_is_made_while_the_transaction_is_open,
    a_worker_notices_the_commit_by_itself,
];

/// A trial with a bench of its own.
pub(crate) fn trial(
    driver: &str,
    place: Place,
    name: &str,
    case: impl AsyncFnOnce(&Bench) + Send + 'static,
) -> Trial {
    let run = move || in_runtime(async { case(&Bench::open(place).await).await });
    Trial::test(name, run).with_kind(format!("{driver}{}", place.suffix()))
}

fn in_runtime(case: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(async { tokio::time::timeout(CASE_TIME_MAX, case).await });
    ended.map_err(|_| format!("did not end within {CASE_TIME_MAX:?}").into())
}

async fn transact<D: Driver, const N: usize>(b: &Bench, steps: [Step; N], end: End) -> [Taken; N] {
    let taken = D::transact(b, steps.into(), end).await;
    taken.try_into().unwrap()
}

fn write(b: &Bench, text: &str) -> Step {
    Step::Run(b.writes(text))
}

fn kind(error: &AcceptError) -> StoreErrorKind {
    let AcceptError::Store(error) = error else { panic!("it is none of the store's: {error}") };
    error.kind()
}

async fn what_is_committed_is_there<D: Driver>(b: &Bench) {
    let steps = [write(b, "paid"), Accept::of(1).into(), Accept::of(2).key("k").into()];
    let [_, one, two] = transact::<D, 3>(b, steps, End::Commit).await;
    let (one, two) = (one.receipt(), two.receipt());
    assert!(one.is_new() && two.is_new());
    let records = b.records().await;
    let found: Vec<_> = records.iter().map(|record| (record.envelope.id, record.status)).collect();
    assert_eq!(found, [(one.id, Status::Pending), (two.id, Status::Pending)]);
    assert_eq!(records[0].envelope.accepted_at, one.accepted_at);
    assert_eq!(b.effects().await, ["paid"]);
    b.is_sound().await;
}

async fn what_is_rolled_back_is_gone<D: Driver>(b: &Bench) {
    let steps = || [write(b, "paid"), Accept::of(1).key("k").session("s").into()];
    let [_, gone] = transact::<D, 2>(b, steps(), End::RollBack).await;
    assert!(gone.receipt().is_new());
    assert_eq!((b.records().await.len(), b.effects().await.len()), (0, 0));
    // Its key, its session and its lane are as if it had never been.
    let [_, new] = transact::<D, 2>(b, steps(), End::Commit).await;
    assert!(new.receipt().is_new());
    assert_eq!(b.records().await[0].status, Status::Pending);
    b.is_sound().await;
}

async fn a_known_key_is_answered_and_the_transaction_goes_on<D: Driver>(b: &Bench) {
    let first = b.inbox.accept(&order(1)).idempotency_key("k").await.unwrap();
    let steps =
        [write(b, "before"), Accept::of(1).key("k").into(), write(b, "after"), Accept::of(2).key("l").into()];
    let [_, known, _, new] = transact::<D, 4>(b, steps, End::Commit).await;
    let pending = AcceptOutcome::AlreadyAccepted { status: Status::Pending };
    assert_eq!((known.receipt().id, known.receipt().outcome), (first.id, pending));
    assert!(new.receipt().is_new());
    assert_eq!(b.records().await.len(), 2);
    assert_eq!(b.effects().await, ["before", "after"]);
    b.is_sound().await;
}

async fn a_key_is_known_in_its_own_transaction<D: Driver>(b: &Bench) {
    let accept = || Accept::of(1).key("k").into();
    let [first, again] = transact::<D, 2>(b, [accept(), accept()], End::Commit).await;
    assert!(first.receipt().is_new() && !again.receipt().is_new());
    assert_eq!(first.receipt().id, again.receipt().id);
    assert_eq!(b.records().await.len(), 1);
    b.is_sound().await;
}

async fn other_content_under_a_known_key_is_a_conflict_and_the_transaction_goes_on<D: Driver>(b: &Bench) {
    let first = b.inbox.accept(&order(1)).idempotency_key("k").await.unwrap();
    let steps = [Accept::of(2).key("k").into(), write(b, "after"), Accept::of(2).key("l").into()];
    let [refused, after, new] = transact::<D, 3>(b, steps, End::Commit).await;
    assert!(matches!(refused.refusal(), AcceptError::Conflict { first: id, .. } if *id == first.id));
    assert!(after.ran() && new.receipt().is_new());
    assert_eq!((b.records().await.len(), b.effects().await.len()), (2, 1));
    b.is_sound().await;
}

async fn a_strict_accept_takes_new_messages_only<D: Driver>(b: &Bench) {
    let strict = |number| Accept::of(number).key("k").strict().into();
    let [_, first] = transact::<D, 2>(b, [write(b, "paid"), strict(1)], End::Commit).await;
    let [_, again] = transact::<D, 2>(b, [write(b, "paid twice"), strict(1)], End::RollBack).await;
    let AcceptError::Duplicate { first: id, status } = again.refusal() else { panic!("{again:?}") };
    assert_eq!((*id, *status), (first.receipt().id, Status::Pending));
    assert_eq!((b.records().await.len(), b.effects().await), (1, vec!["paid".to_owned()]));
}

async fn messages_of_a_session_wait_behind_its_head<D: Driver>(b: &Bench) {
    let accept = |number| Accept::of(number).session("s").into();
    let accepted = transact::<D, 2>(b, [accept(1), accept(2)], End::Commit).await;
    let [third] = transact::<D, 1>(b, [accept(3)], End::Commit).await;
    let head = accepted[0].receipt().id;
    let records = b.records().await;
    let waits: Vec<_> = records.iter().map(|record| (record.status, record.waits_behind)).collect();
    assert_eq!(waits, [(Status::Pending, None), (Status::Parked, Some(head)), (Status::Parked, Some(head))]);
    assert_eq!(records[2].envelope.id, third.receipt().id);
    b.is_sound().await;
}

/// Messages with everything that a message can have, and text that means something to a server.
fn hostile() -> Vec<NewMessage> {
    let text = r#"NULL {"a", \b} 'c'; -- é %"#;
    let full = message("odd.message@7")
        .payload(&[0, 1, 255, b'"', b'\\'][..])
        .content_type("application/octet-stream")
        .tenant(text)
        .key(text)
        .session(text)
        .endpoint("else")
        .priority(Priority::High)
        .header("Quoted", text)
        .header("Empty", "")
        .workflow(text, "cause");
    // Others have nothing, so that every column has values and gaps.
    vec![full.build(), stored(1).build(), stored(2).key("k").build(), stored(3).due_in(60).build()]
}

async fn a_batch_is_stored_as_it_was_given<D: Driver>(b: &Bench) {
    let given = hostile();
    let group = AppendGroup { messages: given.clone() };
    let [taken] = transact::<D, 1>(b, [Step::Append(vec![group])], End::Commit).await;
    let Taken::Appended(Ok(answers)) = taken else { panic!("{taken:?}") };
    assert!(answers[0].iter().all(|answer| answer.receipt().is_some_and(mailslot_core::Receipt::is_new)));
    let records = b.records().await;
    assert_eq!(records.len(), given.len());
    for (NewMessage { contract, payload, metadata, id, .. }, record) in given.into_iter().zip(records) {
        let envelope = record.envelope;
        assert_eq!((envelope.id, envelope.contract, envelope.payload), (id, contract, payload));
        assert_eq!((envelope.endpoint, envelope.tenant), (metadata.endpoint, metadata.tenant));
        assert_eq!((envelope.session, envelope.trace), (metadata.session, metadata.trace));
        assert_eq!((envelope.priority, envelope.headers), (metadata.priority, metadata.headers));
        assert_eq!(envelope.idempotency_key.as_ref(), metadata.idempotency.key());
    }
    b.is_sound().await;
}

async fn a_conflict_keeps_its_group_out_and_no_other<D: Driver>(b: &Bench) {
    b.inbox.accept(&order(1)).idempotency_key("k").await.unwrap();
    let bad = AppendGroup { messages: vec![stored(2).build(), stored(2).key("k").build()] };
    let good = AppendGroup { messages: vec![stored(3).build(), stored(1).key("k").build()] };
    let [taken] = transact::<D, 1>(b, [Step::Append(vec![bad, good])], End::Commit).await;
    let Taken::Appended(Ok(answers)) = taken else { panic!("{taken:?}") };
    assert!(matches!(answers[0][..], [Appended::NotStored, Appended::Conflict { .. }]), "{:?}", answers[0]);
    let new: Vec<_> = answers[1].iter().map(|answer| answer.receipt().unwrap().is_new()).collect();
    assert_eq!(new, [true, false]);
    assert_eq!(b.records().await.len(), 2);
    b.is_sound().await;
}

async fn too_many_messages_are_refused_before_anything_is_sent<D: Driver>(b: &Bench) {
    let messages = (0..=mailslot_core::limits::APPEND_BATCH_MAX).map(|_| stored(1).build()).collect();
    let steps = [Step::Append(vec![AppendGroup { messages }]), write(b, "after")];
    let [taken, after] = transact::<D, 2>(b, steps, End::Commit).await;
    let Taken::Appended(Err(error)) = taken else { panic!("{taken:?}") };
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(after.ran());
    assert_eq!((b.records().await.len(), b.effects().await.len()), (0, 1));
}

async fn an_accept_outside_of_a_transaction_is_refused<D: Driver>(b: &Bench) {
    let Some(error) = D::outside(b).await else {
        assert_eq!(D::NAME, "sea-orm", "every other driver has connections that are in no transaction");
        return;
    };
    assert_eq!(kind(&error), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("in no transaction"), "{error}");
    assert_eq!(b.records().await.len(), 0);
}

async fn an_accept_in_a_failed_transaction_is_refused<D: Driver>(b: &Bench) {
    let steps = [Step::Run("SELECT 1 / 0".into()), Accept::of(1).into()];
    let [broken, refused] = transact::<D, 2>(b, steps, End::RollBack).await;
    assert!(!broken.ran());
    assert_eq!(kind(refused.refusal()), StoreErrorKind::Invalid);
    assert!(refused.refusal().to_string().contains("failed already"), "{}", refused.refusal());
    assert_eq!(b.records().await.len(), 0);
}

/// Another transaction has accepted the same key and does not end.
async fn an_accept_that_waits_for_too_long_may_be_tried_again<D: Driver>(b: &Bench) {
    use sqlx::Connection as _;
    let mut db = b.connect().await;
    let mut other = db.begin().await.unwrap();
    b.inbox.accept_in(&mut *other, &order(1)).idempotency_key("k").await.unwrap();
    let steps = [Step::Run("SET LOCAL lock_timeout = '20ms'".into()), Accept::of(1).key("k").into()];
    let [_, refused] = transact::<D, 2>(b, steps, End::RollBack).await;
    assert_eq!(kind(refused.refusal()), StoreErrorKind::Busy);
    assert!(refused.refusal().is_transient());
    other.rollback().await.unwrap();
    let [accepted] = transact::<D, 1>(b, [Accept::of(1).key("k").into()], End::Commit).await;
    assert!(accepted.receipt().is_new());
}

async fn an_accept_without_the_tables_says_what_is_missing<D: Driver>(b: &Bench) {
    b.run(&format!("DROP SCHEMA {} CASCADE", b.schema)).await;
    let [refused] = transact::<D, 1>(b, [Accept::of(1).into()], End::RollBack).await;
    assert_eq!(kind(refused.refusal()), StoreErrorKind::Schema);
    assert!(refused.refusal().to_string().contains("mailslot migrate"), "{}", refused.refusal());
}

async fn a_first_accept_of_its_contract_holds_up_nobody_else<D: Driver>(b: &Bench) {
    let steps = [Accept::of(1).into(), Step::Elsewhere(2)];
    let [here, elsewhere] = transact::<D, 2>(b, steps, End::RollBack).await;
    let (here, elsewhere) = (here.receipt(), elsewhere.receipt());
    assert!(here.is_new());
    assert_eq!(b.records().await[0].envelope.id, elsewhere.id);
    b.is_sound().await;
}

/// As if numbers had run on while nobody who may make partitions was there.
async fn a_missing_partition_is_made_while_the_transaction_is_open<D: Driver>(b: &Bench) {
    b.run(&format!("SELECT setval('{}.message_seq', 50000000000)", b.schema)).await;
    let steps =
        [write(b, "before"), Accept::of(1).into(), Accept::of(2).session("s").into(), write(b, "after")];
    let [_, plain, in_session, _] = transact::<D, 4>(b, steps, End::Commit).await;
    assert!(plain.receipt().is_new());
    assert!(in_session.receipt().is_new());
    assert_eq!((b.records().await.len(), b.effects().await), (2, vec!["before".into(), "after".into()]));
    b.is_sound().await;
}

/// Nobody tells the worker, and its next poll is an hour away.
async fn a_worker_notices_the_commit_by_itself<D: Driver>(b: &Bench) {
    async fn handle(_: Order) {}
    let idle = WorkerConfig { poll: Duration::from_secs(3600), ..WorkerConfig::default() };
    let inbox = Inbox::builder(b.store.clone()).handler(handle).worker(idle).build().unwrap();
    let mut stats = inbox.watch();
    let handled = async {
        let [accepted] = transact::<D, 1>(b, [Accept::of(1).into()], End::Commit).await;
        assert!(accepted.receipt().is_new());
        stats.wait_for(|stats| stats.completed == 1).await.unwrap();
    };
    inbox.run(handled).await.unwrap();
}
