//! Claims begin a little before what was taken last. Whatever lies farther back, for whatever reason, is found by one of
//! the next claims, also by those that go the long way.

use mailslot_core::store::{AppendGroup, Exchange, Exchanged, LaneRequest, LeaseRequest};
use mailslot_core::{EndpointName, InboxStore as _, KeyPolicy, Owner, TenantName};
use mailslot_store_postgres::{PostgresOptions, PostgresStore};
use mailslot_testkit::message::{MessageBuilder, message};
use mailslot_testkit::servers::{self, Scratch};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use std::time::Duration;

const ATTEMPTS: u32 = 5;

/// How long a message may stay unseen here; a claim that would never find it fails the test.
const PATIENCE: Duration = Duration::from_secs(30);

struct Place {
    url: String,
    schema: String,
    _scratch: Scratch,
}

impl Place {
    fn new() -> Self {
        let (url, schema) = (servers::shared(), servers::fresh_schema());
        let scratch = Scratch::new(url.clone(), schema.clone());
        Self { url, schema, _scratch: scratch }
    }

    /// With the server's clock: with a test's clock, every claim begins at the front.
    async fn open(&self) -> PostgresStore {
        let options: PostgresOptions = self.url.parse().expect("the URL is right");
        let options = options.schema(self.schema.clone()).expect("the name is right");
        PostgresStore::open(options).await.expect("the store opens")
    }

    /// Puts what is pending an hour back, as a commit that took so long would, after so many attempts.
    async fn put_back(&self, attempts: u32) {
        let mut db = PgConnection::connect(&self.url).await.expect("the server answers");
        let update =
            format!("UPDATE {}.ready SET due_at = due_at - 3600000000, attempt = {attempts}", self.schema);
        db.execute(sqlx::raw_sql(AssertSqlSafe(update))).await.expect("the rows are there");
    }
}

async fn accept(store: &PostgresStore, message: MessageBuilder) {
    let group = AppendGroup { messages: vec![message.build()] };
    store.append(vec![group]).await.expect("it is stored");
}

async fn claim(store: &PostgresStore, tenant: Option<&str>) -> Exchanged {
    let contract = "order".parse().expect("the name is right");
    let lease = LeaseRequest {
        owner: Owner::new("test").expect("the name is right"),
        lanes: vec![LaneRequest { endpoint: EndpointName::default(), contract, attempts_max: ATTEMPTS }],
        limit: 10,
        duration: Duration::from_secs(60),
        tenant: tenant.map(|tenant| TenantName::new(tenant).expect("the name is right")),
        due_until: None,
    };
    let exchange = Exchange { settlements: Vec::new(), lease: Some(lease) };
    store.exchange(exchange).await.expect("the store answers")
}

/// Claims until one brings something.
async fn claim_until_found(store: &PostgresStore, tenant: Option<&str>) -> Exchanged {
    let found = async {
        loop {
            let exchanged = claim(store, tenant).await;
            if !exchanged.found_nothing() {
                return exchanged;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("a claim finds what is due")
}

/// Accepts a message, puts it behind what claims have seen, and returns what a claim makes of it.
async fn behind(message: MessageBuilder, attempts: u32, tenant: Option<&str>) -> Exchanged {
    let place = Place::new();
    let store = place.open().await;
    // Claims go on from here.
    accept(&store, self::message("order")).await;
    assert_eq!(claim(&store, None).await.leased.len(), 1);
    accept(&store, message).await;
    place.put_back(attempts).await;
    claim_until_found(&store, tenant).await
}

#[tokio::test]
async fn a_fresh_message_is_found() {
    assert_eq!(behind(message("order"), 0, None).await.leased.len(), 1);
}

#[tokio::test]
async fn one_that_was_tried_is_found() {
    for attempts in 1..ATTEMPTS {
        let leased = behind(message("order"), attempts, None).await.leased;
        assert_eq!(leased[0].attempt.number, attempts + 1);
    }
}

#[tokio::test]
async fn one_whose_attempts_are_used_up_is_found_and_refused() {
    let exchanged = behind(message("order"), ATTEMPTS, None).await;
    assert_eq!((exchanged.leased.len(), exchanged.refused.len()), (0, 1));
}

#[tokio::test]
async fn one_whose_key_is_freed_by_its_start_is_found() {
    let message = message("order").key("one").policy(KeyPolicy::UntilStarted).return_first();
    assert_eq!(behind(message, 0, None).await.leased.len(), 1);
}

#[tokio::test]
async fn one_of_a_session_is_found() {
    assert_eq!(behind(message("order").session("one"), 2, None).await.leased.len(), 1);
}

#[tokio::test]
async fn one_of_a_tenant_is_found_by_a_claim_for_the_tenant() {
    assert_eq!(behind(message("order").tenant("acme"), 0, Some("acme")).await.leased.len(), 1);
}
