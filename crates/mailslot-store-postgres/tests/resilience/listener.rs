//! The connection that listens for the accepts of other processes.

use crate::rig::{Rig, Working, accept, by_hand, eventually, options};
use mailslot_store_postgres::{PostgresStore, WakeMode};
use std::time::Duration;

/// Nobody gets in any more; who is in stays.
const CLOSE: &str = "ALTER DATABASE inbox ALLOW_CONNECTIONS false";
const OPEN: &str = "ALTER DATABASE inbox ALLOW_CONNECTIONS true";

const END_LISTENERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                             WHERE datname = 'inbox' AND query ILIKE 'LISTEN %'";

async fn until(store: &PostgresStore, mode: WakeMode) {
    eventually(mode.as_str(), async || store.wake_mode() == mode).await;
}

/// A database of its own, which can be closed from another one.
async fn make_inbox(rig: &Rig) -> String {
    by_hand(&rig.url(), "CREATE DATABASE inbox").await;
    rig.url().strip_suffix("postgres").unwrap().to_owned() + "inbox"
}

#[tokio::test]
async fn a_listener_without_a_connection_is_replaced_by_polling_until_it_has_one_again() {
    let rig = Rig::start().await;
    let url = make_inbox(&rig).await;
    let open = async || PostgresStore::open(options(&url)).await.unwrap();
    let (here, other) = (open().await, open().await);
    let mut working = Working::start(here.clone());
    let other =
        mailslot_engine::Inbox::builder(other).contract::<mailslot_testkit::engine::Order>().build().unwrap();
    accept(&other, 0).await.unwrap();
    working.until_handled(0).await;
    until(&here, WakeMode::Listening).await;

    by_hand(&rig.url(), CLOSE).await;
    by_hand(&rig.url(), END_LISTENERS).await;
    until(&here, WakeMode::Connecting).await;
    accept(&other, 1).await.unwrap();
    working.until_handled(1).await;
    assert_eq!(here.wake_mode(), WakeMode::Connecting);

    by_hand(&rig.url(), OPEN).await;
    until(&here, WakeMode::Listening).await;
    working.assert_nothing_is_lost(2).await;
    working.stop().await;
    assert_eq!(rig.log.count(&["WARN"]), 0, "{}", rig.log.text());
}

/// So seldom that only a notification can be in time.
#[tokio::test]
async fn a_listener_that_is_back_hears_other_processes_again() {
    let rig = Rig::start().await;
    let url = make_inbox(&rig).await;
    let open = async || PostgresStore::open(options(&url)).await.unwrap();
    let (here, other) = (open().await, open().await);
    let hour = Duration::from_secs(3600);
    let mut working = Working::start_with(here.clone(), hour);
    let other =
        mailslot_engine::Inbox::builder(other).contract::<mailslot_testkit::engine::Order>().build().unwrap();
    for number in 0..3 {
        until(&here, WakeMode::Listening).await;
        accept(&other, number).await.unwrap();
        working.until_handled(number).await;
        by_hand(&rig.url(), END_LISTENERS).await;
        until(&here, WakeMode::Connecting).await;
    }
    working.assert_nothing_is_lost(3).await;
}
