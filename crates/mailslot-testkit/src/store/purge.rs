//! Purging: everything of a message goes, unless a worker holds it.

use super::Fixture;
use super::verbs::{done, ids, order};
use crate::message::message;
use mailslot_core::store::{Change, Filter, Settled};
use mailslot_core::{MessageId, Status};

cases![
    a_purge_takes_whatever_is_not_leased,
    a_leased_message_survives_a_purge_of_everything,
    a_purged_message_is_gone_with_its_key_and_id,
    a_purge_takes_only_what_matches,
    a_purge_takes_at_most_its_limit_oldest_first,
    a_change_of_nothing_changes_nothing,
    a_purge_of_one_tenants_id_leaves_the_others,
];

async fn a_purge_takes_whatever_is_not_leased(fx: &Fixture) {
    for &status in Status::ALL {
        let id = fx.place(message(&format!("order-{status}")), status).await.id;
        let taken = u64::from(status != Status::Leased);
        assert_eq!(fx.change(Change::Purge, [id]).await, taken, "{status}");
        assert_eq!(fx.is_gone(id).await, status != Status::Leased, "{status}");
    }
}

async fn a_leased_message_survives_a_purge_of_everything(fx: &Fixture) {
    fx.accept_all((0..3).map(|_| order())).await;
    let leased = fx.lease_one().await;
    assert_eq!(done(fx.store.change(Change::Purge, &Filter::default(), 100).await).changed, 2);
    assert_eq!(fx.complete(&leased).await, Settled::Applied(Status::Completed));
}

async fn a_purged_message_is_gone_with_its_key_and_id(fx: &Fixture) {
    let id = MessageId::generate();
    fx.place(order().id(id).key("k"), Status::Completed).await;
    fx.change(Change::Purge, [id]).await;
    let again = fx.accept(order().id(id).key("k").payload("other")).await;
    assert!(again.is_new());
    assert_eq!(fx.history(id).await, []);
}

async fn a_purge_takes_only_what_matches(fx: &Fixture) {
    let kept = fx.place(order(), Status::Completed).await.id;
    fx.place(order(), Status::Cancelled).await;
    let cancelled = Filter { statuses: Some(vec![Status::Cancelled]), ..Filter::default() };
    assert_eq!(done(fx.store.change(Change::Purge, &cancelled, 100).await).changed, 1);
    assert_eq!(fx.find(Filter::default()).await, [kept]);
}

async fn a_purge_takes_at_most_its_limit_oldest_first(fx: &Fixture) {
    let accepted = fx.accept_all((0..5).map(|_| order())).await;
    assert_eq!(done(fx.store.change(Change::Purge, &Filter::default(), 2).await).changed, 2);
    assert_eq!(fx.find(Filter::default()).await, accepted[2..]);
    assert_eq!(ids(&fx.lease(10).await), accepted[2..]);
}

async fn a_change_of_nothing_changes_nothing(fx: &Fixture) {
    let id = fx.place(order(), Status::DeadLettered).await.id;
    for change in [Change::Purge, Change::Cancel, Change::Requeue, Change::Skip] {
        assert_eq!(fx.change(change, []).await, 0);
        assert_eq!(fx.change(change, [MessageId::generate()]).await, 0);
        assert_eq!(done(fx.store.change(change, &Filter::default(), 0).await).changed, 0);
    }
    assert_eq!(fx.status(id).await, Status::DeadLettered);
}

async fn a_purge_of_one_tenants_id_leaves_the_others(fx: &Fixture) {
    let id = MessageId::generate();
    fx.accept(order().id(id).tenant("acme")).await;
    fx.accept(order().id(id).tenant("umbrella")).await;
    let acme = Filter { tenant: Some(super::verbs::tenant("acme")), ..Filter::of_ids([id]) };
    assert_eq!(done(fx.store.change(Change::Purge, &acme, 100).await).changed, 1);
    assert!(fx.accept(order().id(id).tenant("acme")).await.is_new());
    assert!(!fx.accept(order().id(id).tenant("umbrella")).await.is_new());
}
