//! What a healthy store says about itself.

use super::Fixture;
use super::verbs::done;
use crate::message::message;
use mailslot_core::Status;

cases![
    a_fresh_store_is_empty_and_healthy,
    a_busy_store_is_healthy,
    there_is_nothing_to_repair_in_a_healthy_store,
    the_schema_is_the_one_that_is_wanted,
];

/// One message in each state, with a session and without.
async fn fill(fx: &Fixture) {
    for &status in Status::ALL {
        fx.place(message(&format!("order-{status}")).session(&format!("session-{status}")), status).await;
        fx.place(message(&format!("plain-{status}")), status).await;
    }
}

async fn a_fresh_store_is_empty_and_healthy(fx: &Fixture) {
    assert_eq!(done(fx.store.check().await), []);
    assert_eq!(done(fx.store.counts().await), []);
    assert_eq!(done(fx.store.sessions(false, 10).await), []);
    assert_eq!(done(fx.store.leases(10).await), []);
    assert_eq!(done(fx.store.redrives().await), []);
    assert!(fx.find(mailslot_core::store::Filter::default()).await.is_empty());
    assert!(fx.is_gone(mailslot_core::MessageId::generate()).await);
}

async fn a_busy_store_is_healthy(fx: &Fixture) {
    fill(fx).await;
    assert_eq!(done(fx.store.check().await), []);
}

async fn there_is_nothing_to_repair_in_a_healthy_store(fx: &Fixture) {
    fill(fx).await;
    let before = done(super::every_record(&*fx.store, &mailslot_core::store::Filter::default()).await);
    assert_eq!(done(fx.store.repair().await), []);
    let after = done(super::every_record(&*fx.store, &mailslot_core::store::Filter::default()).await);
    assert_eq!(after, before);
}

async fn the_schema_is_the_one_that_is_wanted(fx: &Fixture) {
    let schema = done(fx.store.schema().await);
    assert_eq!(schema.found, schema.wanted);
    assert_eq!(schema.backend, fx.store.capabilities().backend);
}
