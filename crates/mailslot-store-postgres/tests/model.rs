//! Random operations on PostgreSQL and on the memory store: every answer and all content are the same.

use mailslot_core::ManualClock;
use mailslot_store_postgres::{PostgresOptions, PostgresStore};
use mailslot_testkit::store::{Opened, TestStore};
use mailslot_testkit::{model, servers};
use std::sync::Arc;

#[test]
fn a_schema_agrees_with_the_memory_store() {
    let fresh = |clock| async move {
        let schema = servers::fresh_schema();
        let scratch = servers::Scratch::new(servers::shared(), schema.clone());
        let opened = Opened::shared(open(schema.clone(), clock).await).keep(scratch);
        opened.reopen(move |clock| open(schema.clone(), clock))
    };
    model::run(fresh, 24);
}

async fn open(schema: String, clock: Arc<ManualClock>) -> Arc<dyn TestStore> {
    let options: PostgresOptions = servers::shared().parse().expect("the server's URL is one");
    let options = options.schema(schema).expect("the name is a plain one").clock(clock);
    Arc::new(PostgresStore::open(options).await.expect("the schema can be opened"))
}
