//! What a store remembers of deliveries, and what becomes of those that it stores.

use super::Fixture;
use super::claim::claim;
use super::verbs::{done, endpoint, handoff, order, retry_in};
use crate::message::{MessageBuilder, valid};
use mailslot_core::store::{
    Claim, Claimed, Concluded, Conclusion, Known, Lookup, Question, RetentionPolicy, SessionRef, Stored,
};
use mailslot_core::{
    DeliveryIdentity, Disposition, EndpointName, ErrorText, MessageId, NewMessage, OutcomeKind, Reason,
    SessionKey, Status, StoreErrorKind,
};
use std::time::Duration;
use uuid::Uuid;

cases![
    a_delivery_is_known_once_it_was_handled,
    a_record_may_be_repeated,
    a_record_says_nothing_of_other_endpoints,
    ids_are_bytes,
    the_longest_id_is_kept_whole,
    records_go_when_they_are_older_than_the_retention,
    a_repeated_record_keeps_its_first_time,
    records_go_oldest_first_and_a_bounded_number_at_once,
    retention_of_an_endpoint_leaves_the_others_alone,
    records_outlive_the_process needs Reopen,
    a_delivery_that_failed_is_tried_again_and_known_by_what_becomes_of_it,
    a_delivery_that_is_given_up_blocks_its_session,
    a_delivery_that_waits_for_a_handoff_is_not_known_as_handled,
    a_delivery_behind_a_blocked_session_waits_in_order,
    a_delivery_whose_session_is_free_by_now_is_due,
    a_failed_delivery_waits_if_its_session_was_taken_meanwhile,
    a_delivery_is_stored_once,
    a_handled_delivery_is_not_stored,
    a_stored_delivery_is_not_recorded_as_handled,
    a_stored_delivery_may_have_been_handled,
    a_delivery_without_identity_is_stored_and_not_known,
    what_a_stored_delivery_came_to_outlives_its_message,
    conclusions_stand_each_for_itself,
    a_claim_keeps_others_away_until_it_is_over,
    a_claim_is_prolonged_and_given_up_by_its_owner_only,
    what_has_come_to_something_cannot_be_claimed,
    a_claimed_delivery_that_was_handled_is_recorded,
    a_delivery_that_cannot_be_stored_is_refused_by_name,
    too_much_at_once_is_refused,
];

fn identity(id: &str) -> DeliveryIdentity {
    identity_at(EndpointName::DEFAULT, id)
}

fn identity_at(at: &str, id: &str) -> DeliveryIdentity {
    DeliveryIdentity::new(&endpoint(at), Some(id)).unwrap_or_else(|why| panic!("{why}"))
}

fn session(key: &str) -> SessionRef {
    SessionRef { endpoint: EndpointName::default(), tenant: None, key: valid(SessionKey::new(key)) }
}

fn handled(id: &str) -> Conclusion {
    Conclusion::Handled(identity(id))
}

/// A delivery to store.
fn store(id: &str, message: MessageBuilder, handled: Option<Disposition>) -> Conclusion {
    let handled = handled.map(|disposition| (disposition, Some(ErrorText::new("the bank is closed"))));
    Conclusion::Store(Box::new(Stored { identity: Some(identity(id)), message: message.build(), handled }))
}

fn give_up() -> Disposition {
    Disposition::DeadLetter { reason: Reason::Permanent }
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 3600)
}

impl Fixture {
    async fn look_up(&self, identity: &DeliveryIdentity, session: Option<SessionRef>) -> Lookup {
        let question = Question { identity: Some(identity.clone()), session };
        done(self.store.look_up(&[question]).await).remove(0)
    }

    async fn known(&self, id: &str) -> Option<Known> {
        self.look_up(&identity(id), None).await.known
    }

    async fn blocked_by(&self, key: &str) -> Option<MessageId> {
        let question = Question { identity: None, session: Some(session(key)) };
        done(self.store.look_up(&[question]).await).remove(0).blocked_by
    }

    async fn conclude(&self, conclusion: Conclusion) -> Concluded {
        done(self.store.conclude(vec![conclusion]).await).remove(0)
    }

    async fn keep(&self, conclusion: Conclusion) -> (MessageId, Status) {
        match self.conclude(conclusion).await {
            Concluded::Stored { id, status } => (id, status),
            other => panic!("expected it to be stored, got {other:?}"),
        }
    }

    async fn purge(&self, at: &str, retention: Duration, limit: usize) -> usize {
        done(self.store.purge(&endpoint(at), retention, limit).await)
    }
}

async fn a_delivery_is_known_once_it_was_handled(fx: &Fixture) {
    assert_eq!(fx.known("m1").await, None);
    assert_eq!(fx.conclude(handled("m1")).await, Concluded::Recorded);
    assert_eq!(fx.known("m1").await, Some(Known::Completed));
    assert_eq!(fx.known("m2").await, None);
}

async fn a_record_may_be_repeated(fx: &Fixture) {
    let many = (0..32).map(|_| fx.conclude(handled("m1")));
    for concluded in futures_util::future::join_all(many).await {
        assert_eq!(concluded, Concluded::Recorded);
    }
    let twice = done(fx.store.conclude(vec![handled("m2"), handled("m2")]).await);
    assert_eq!(twice, [Concluded::Recorded, Concluded::Recorded]);
    for id in ["m1", "m2"] {
        assert_eq!(fx.known(id).await, Some(Known::Completed));
    }
}

async fn a_record_says_nothing_of_other_endpoints(fx: &Fixture) {
    fx.conclude(Conclusion::Handled(identity_at("billing", "m1"))).await;
    for other in ["shipping", "billing ", "Billing"] {
        assert_eq!(fx.look_up(&identity_at(other, "m1"), None).await.known, None, "{other}");
    }
}

async fn ids_are_bytes(fx: &Fixture) {
    let ids = ["m", "M", "m ", " m", "m\u{1f}", "\u{1f}m", "e\u{301}", "\u{e9}", "\u{1f600}", "m'", "m%"];
    for (place, id) in ids.iter().enumerate() {
        assert_eq!(fx.known(id).await, None, "{id:?}");
        fx.conclude(handled(id)).await;
        for known in &ids[..=place] {
            assert_eq!(fx.known(known).await, Some(Known::Completed), "{known:?} after {id:?}");
        }
    }
}

async fn the_longest_id_is_kept_whole(fx: &Fixture) {
    let (at, id) = ("e".repeat(260), "\u{1f600}".repeat(256));
    fx.conclude(Conclusion::Handled(identity_at(&at, &id))).await;
    assert_eq!(fx.look_up(&identity_at(&at, &id), None).await.known, Some(Known::Completed));
    assert_eq!(fx.look_up(&identity_at(&at, &"\u{1f600}".repeat(255)), None).await.known, None);
}

async fn records_go_when_they_are_older_than_the_retention(fx: &Fixture) {
    fx.conclude(handled("old")).await;
    fx.advance(60);
    fx.conclude(handled("new")).await;
    fx.advance(6 * 24 * 3600 + 24 * 3600 - 60);
    assert_eq!(fx.purge("default", days(7), 100).await, 0, "as old as the retention is not older");
    fx.advance(1);
    assert_eq!(fx.purge("default", days(7), 100).await, 1);
    assert_eq!((fx.known("old").await, fx.known("new").await), (None, Some(Known::Completed)));
    assert_eq!(fx.purge("default", days(7), 100).await, 0);
    assert_eq!(fx.conclude(handled("old")).await, Concluded::Recorded, "it is as if it had never come");
}

async fn a_repeated_record_keeps_its_first_time(fx: &Fixture) {
    fx.conclude(handled("m1")).await;
    fx.advance(60);
    fx.conclude(handled("m1")).await;
    assert_eq!(fx.purge("default", Duration::from_secs(30), 100).await, 1);
}

async fn records_go_oldest_first_and_a_bounded_number_at_once(fx: &Fixture) {
    for number in 0..5 {
        fx.conclude(handled(&number.to_string())).await;
        fx.advance(1);
    }
    fx.advance(60);
    assert_eq!(fx.purge("default", Duration::from_secs(1), 2).await, 2);
    assert_eq!((fx.known("1").await, fx.known("2").await), (None, Some(Known::Completed)));
    assert_eq!(fx.purge("default", Duration::from_secs(1), 2).await, 2);
    assert_eq!(fx.purge("default", Duration::from_secs(1), 2).await, 1);
    assert_eq!(fx.purge("default", Duration::from_secs(1), 2).await, 0);
}

async fn retention_of_an_endpoint_leaves_the_others_alone(fx: &Fixture) {
    for at in ["billing", "billing ", "shipping"] {
        fx.conclude(Conclusion::Handled(identity_at(at, "m1"))).await;
    }
    fx.advance(60);
    assert_eq!(fx.purge("billing", Duration::from_secs(1), 100).await, 1);
    for at in ["billing ", "shipping"] {
        assert_eq!(fx.look_up(&identity_at(at, "m1"), None).await.known, Some(Known::Completed), "{at:?}");
    }
}

async fn records_outlive_the_process(fx: &mut Fixture) {
    fx.conclude(handled("m1")).await;
    let (id, _) = fx.keep(store("m2", order(), Some(retry_in(60)))).await;
    fx.reopen().await;
    assert_eq!(fx.known("m1").await, Some(Known::Completed));
    assert_eq!(fx.known("m2").await, Some(Known::Stored { id, status: Status::Pending }));
}

async fn a_delivery_that_failed_is_tried_again_and_known_by_what_becomes_of_it(fx: &Fixture) {
    let (id, status) = fx.keep(store("m1", order().session("s"), Some(retry_in(30)))).await;
    assert_eq!((status, fx.blocked_by("s").await), (Status::Pending, Some(id)));
    let detail = fx.detail(id).await;
    assert_eq!((detail.record.attempt.number, detail.record.due_at), (1, Some(fx.after(30))));
    assert_eq!(detail.record.error.map(String::from).as_deref(), Some("the bank is closed"));
    assert_eq!(detail.history[0].kind, OutcomeKind::Retried);
    assert_eq!(fx.lease(10).await, []);
    fx.advance(30);
    let leased = fx.lease_one().await;
    assert_eq!(leased.attempt.number, 2);
    assert!(!fx.known("m1").await.expect("it is stored").is_completed());
    fx.complete(&leased).await;
    assert!(fx.known("m1").await.expect("it is stored").is_completed());
    assert_eq!(fx.blocked_by("s").await, None);
}

async fn a_delivery_that_is_given_up_blocks_its_session(fx: &Fixture) {
    let (id, status) = fx.keep(store("m1", order().session("s"), Some(give_up()))).await;
    assert_eq!((status, fx.blocked_by("s").await), (Status::DeadLettered, Some(id)));
    assert_eq!(fx.record(id).await.reason, Some(Reason::Permanent));
    assert_eq!(fx.known("m1").await, Some(Known::Stored { id, status: Status::DeadLettered }));
}

async fn a_delivery_that_waits_for_a_handoff_is_not_known_as_handled(fx: &Fixture) {
    let suspend = Disposition::Suspend(handoff());
    let (id, status) = fx.keep(store("m1", order().session("s"), Some(suspend))).await;
    assert_eq!((status, fx.blocked_by("s").await), (Status::Suspended, Some(id)));
    assert!(!fx.known("m1").await.expect("it is stored").is_completed());
    assert_eq!(fx.record(id).await.handoff, Some(handoff()));
}

async fn a_delivery_behind_a_blocked_session_waits_in_order(fx: &Fixture) {
    let (head, _) = fx.keep(store("m1", order().session("s"), Some(retry_in(30)))).await;
    let mut waiting = Vec::new();
    for id in ["m2", "m3"] {
        let (id, status) = fx.keep(store(id, order().session("s"), None)).await;
        assert_eq!((status, fx.blocked_by("s").await), (Status::Parked, Some(head)));
        waiting.push(id);
    }
    fx.advance(30);
    for id in [head, waiting[0], waiting[1]] {
        let leased = fx.lease(10).await;
        assert_eq!(leased.iter().map(|leased| leased.envelope.id).collect::<Vec<_>>(), [id]);
        fx.complete(&leased[0]).await;
    }
    assert!(fx.known("m3").await.expect("it is stored").is_completed());
}

async fn a_delivery_whose_session_is_free_by_now_is_due(fx: &Fixture) {
    let (id, status) = fx.keep(store("m1", order().session("s"), None)).await;
    assert_eq!(status, Status::Pending);
    let leased = fx.lease_one().await;
    assert_eq!((leased.envelope.id, leased.attempt.number), (id, 1));
}

async fn a_failed_delivery_waits_if_its_session_was_taken_meanwhile(fx: &Fixture) {
    let head = fx.accept(order().session("s")).await.id;
    let (id, status) = fx.keep(store("m1", order().session("s"), Some(retry_in(0)))).await;
    assert_eq!((status, fx.blocked_by("s").await), (Status::Parked, Some(head)));
    let leased = fx.lease_one().await;
    assert_eq!(leased.envelope.id, head);
    fx.complete(&leased).await;
    assert_eq!(fx.lease_one().await.envelope.id, id);
}

async fn a_delivery_is_stored_once(fx: &Fixture) {
    let (id, status) = fx.keep(store("m1", order(), Some(retry_in(0)))).await;
    for again in [None, Some(retry_in(0)), Some(Disposition::Complete)] {
        let concluded = fx.conclude(store("m1", order(), again)).await;
        assert_eq!(concluded, Concluded::Known(Known::Stored { id, status }));
    }
    assert_eq!(fx.lease(10).await.len(), 1);
}

async fn a_handled_delivery_is_not_stored(fx: &Fixture) {
    fx.conclude(handled("m1")).await;
    let concluded = fx.conclude(store("m1", order(), None)).await;
    assert_eq!(concluded, Concluded::Known(Known::Completed));
    assert_eq!(fx.lease(10).await, []);
}

/// Its message is there and will be handled; a record would hide that.
async fn a_stored_delivery_is_not_recorded_as_handled(fx: &Fixture) {
    let (id, status) = fx.keep(store("m1", order(), None)).await;
    assert_eq!(fx.conclude(handled("m1")).await, Concluded::Known(Known::Stored { id, status }));
    assert_eq!(fx.known("m1").await, Some(Known::Stored { id, status }));
}

/// So that its history is kept as that of any other.
async fn a_stored_delivery_may_have_been_handled(fx: &Fixture) {
    let (id, status) = fx.keep(store("m1", order().session("s"), Some(Disposition::Complete))).await;
    assert_eq!((status, fx.blocked_by("s").await), (Status::Completed, None));
    assert!(fx.known("m1").await.expect("it is stored").is_completed());
    let kinds: Vec<_> = fx.history(id).await.iter().map(|outcome| outcome.kind).collect();
    assert_eq!(kinds, [OutcomeKind::Completed]);
}

async fn a_delivery_without_identity_is_stored_and_not_known(fx: &Fixture) {
    for _ in 0..2 {
        let stored = Stored { identity: None, message: order().build(), handled: Some((retry_in(0), None)) };
        let (_, status) = fx.keep(Conclusion::Store(Box::new(stored))).await;
        assert_eq!(status, Status::Pending);
    }
    assert_eq!(fx.lease(10).await.len(), 2);
}

async fn what_a_stored_delivery_came_to_outlives_its_message(fx: &Fixture) {
    fx.keep(store("done", order(), Some(Disposition::Complete))).await;
    fx.keep(store("dead", order(), Some(give_up()))).await;
    fx.advance(60);
    let none = Some(Duration::ZERO);
    let policy = RetentionPolicy { completed: none, skipped: none, cancelled: none, dead_lettered: none };
    assert_eq!(fx.purge("default", Duration::ZERO, 100).await, 0, "a record goes with its message");
    assert_eq!(done(fx.store.retain(None, &policy, 100).await), 2);
    assert_eq!(fx.known("done").await, Some(Known::Completed));
    assert_eq!(fx.known("dead").await, None, "it was never handled");
    assert_eq!(fx.purge("default", Duration::from_secs(60), 100).await, 0, "it counts from its end");
    fx.advance(1);
    assert_eq!(fx.purge("default", Duration::from_secs(60), 100).await, 1);
}

async fn conclusions_stand_each_for_itself(fx: &Fixture) {
    fx.conclude(handled("known")).await;
    let conclusions = vec![
        store("a", order().session("s"), Some(retry_in(0))),
        handled("b"),
        store("known", order(), None),
        store("c", order().session("s"), None),
        store("a", order(), None),
        store("d", order(), Some(Disposition::Complete)),
    ];
    let concluded = done(fx.store.conclude(conclusions).await);
    let statuses: Vec<_> = concluded
        .iter()
        .map(|concluded| match concluded {
            Concluded::Stored { status, .. } | Concluded::Known(Known::Stored { status, .. }) => {
                Some(*status)
            }
            _ => None,
        })
        .collect();
    let [pending, parked, completed] = [Status::Pending, Status::Parked, Status::Completed].map(Some);
    assert_eq!(statuses, [pending, None, None, parked, pending, completed]);
    assert_eq!(concluded[1], Concluded::Recorded);
    assert_eq!(concluded[2], Concluded::Known(Known::Completed));
    assert_eq!(fx.claim(claim("order")).await.leased.len(), 1);
}

fn claim_of(id: &str, owner: Uuid, seconds: u64) -> Claim {
    Claim { identity: identity(id), owner, duration: Duration::from_secs(seconds) }
}

impl Fixture {
    async fn claim_delivery(&self, id: &str, owner: Uuid) -> Claimed {
        done(self.store.claim(claim_of(id, owner, 60)).await)
    }
}

async fn a_claim_keeps_others_away_until_it_is_over(fx: &Fixture) {
    let [one, two] = [1, 2].map(Uuid::from_u128);
    let until = fx.after(60);
    assert_eq!(fx.claim_delivery("m1", one).await, Claimed::Granted { until });
    assert_eq!(fx.claim_delivery("m1", two).await, Claimed::Refused(Known::Claimed { until }));
    assert_eq!(fx.known("m1").await, Some(Known::Claimed { until }));
    assert_eq!(fx.claim_delivery("m2", two).await, Claimed::Granted { until });
    fx.advance(60);
    assert_eq!(fx.known("m1").await, None);
    assert_eq!(fx.claim_delivery("m1", two).await, Claimed::Granted { until: fx.after(60) });
}

async fn a_claim_is_prolonged_and_given_up_by_its_owner_only(fx: &Fixture) {
    let [one, two] = [1, 2].map(Uuid::from_u128);
    fx.claim_delivery("m1", one).await;
    fx.advance(30);
    assert_eq!(fx.claim_delivery("m1", one).await, Claimed::Granted { until: fx.after(60) });
    done(fx.store.give_up(&identity("m1"), two).await);
    assert!(fx.known("m1").await.is_some());
    done(fx.store.give_up(&identity("m1"), one).await);
    assert_eq!(fx.known("m1").await, None);
    assert_eq!(fx.claim_delivery("m1", two).await, Claimed::Granted { until: fx.after(60) });
}

async fn what_has_come_to_something_cannot_be_claimed(fx: &Fixture) {
    let someone = Uuid::from_u128(1);
    fx.conclude(handled("m1")).await;
    assert_eq!(fx.claim_delivery("m1", someone).await, Claimed::Refused(Known::Completed));
    let (id, status) = fx.keep(store("m2", order(), None)).await;
    assert_eq!(fx.claim_delivery("m2", someone).await, Claimed::Refused(Known::Stored { id, status }));
    for id in ["m1", "m2"] {
        done(fx.store.give_up(&identity(id), someone).await);
        assert!(fx.known(id).await.is_some());
    }
}

async fn a_claimed_delivery_that_was_handled_is_recorded(fx: &Fixture) {
    let someone = Uuid::from_u128(1);
    for id in ["m1", "m2"] {
        fx.claim_delivery(id, someone).await;
    }
    assert_eq!(fx.conclude(handled("m1")).await, Concluded::Recorded);
    assert_eq!(fx.known("m1").await, Some(Known::Completed));
    let (_, status) = fx.keep(store("m2", order(), Some(retry_in(0)))).await;
    assert_eq!(status, Status::Pending);
}

async fn a_delivery_that_cannot_be_stored_is_refused_by_name(fx: &Fixture) {
    let with = |message: NewMessage, handled| Stored { identity: Some(identity("m1")), message, handled };
    let refused = [
        (with(order().key("k").build(), None), "idempotency key"),
        (with(order().id(MessageId::generate()).build(), None), "supplied id"),
        (with(order().endpoint("elsewhere").build(), None), "endpoint"),
        (with(order().build(), Some((Disposition::Release, None))), "handled"),
    ];
    for (stored, field) in refused {
        let error = fx.store.conclude(vec![Conclusion::Store(Box::new(stored))]).await.expect_err(field);
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        assert!(error.to_string().contains(field), "{error}");
    }
    let brief = Claim { duration: Duration::ZERO, ..claim_of("m1", Uuid::from_u128(1), 1) };
    assert_eq!(fx.store.claim(brief).await.expect_err("too brief").kind(), StoreErrorKind::Invalid);
    assert_eq!(fx.known("m1").await, None);
}

async fn too_much_at_once_is_refused(fx: &Fixture) {
    let many: Vec<_> = (0..=1_000).map(|number| handled(&number.to_string())).collect();
    assert_eq!(fx.store.conclude(many).await.expect_err("too many").kind(), StoreErrorKind::Invalid);
    let question = Question { identity: Some(identity("0")), session: None };
    let asked = fx.store.look_up(&vec![question; 1_001]).await;
    assert_eq!(asked.expect_err("too many").kind(), StoreErrorKind::Invalid);
    assert_eq!(fx.known("0").await, None);
}
