//! The conformance suite on PostgreSQL 15, on the newest release, and on 15 through a pooler in transaction mode. Each
//! case has a schema of its own.

use libtest_mimic::{Arguments, Trial};
use mailslot_core::ManualClock;
use mailslot_store_postgres::{PostgresOptions, PostgresStore};
use mailslot_testkit::servers;
use mailslot_testkit::store::{self, Opened, TestStore};
use std::sync::Arc;

fn main() {
    let releases = [
        trials("postgres 15", servers::shared),
        trials("postgres newest", servers::newest),
        trials("postgres behind pgbouncer", servers::pgbouncer),
    ];
    let trials = releases.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}

fn trials(name: &'static str, url: fn() -> String) -> Vec<Trial> {
    store::trials(name, move |clock| async move {
        let schema = servers::fresh_schema();
        let scratch = servers::Scratch::new(url(), schema.clone());
        let opened = Opened::shared(open(url(), schema.clone(), clock).await).keep(scratch);
        opened.reopen(move |clock| open(url(), schema.clone(), clock))
    })
}

async fn open(url: String, schema: String, clock: Arc<ManualClock>) -> Arc<dyn TestStore> {
    let options: PostgresOptions = url.parse().expect("the server's URL is one");
    let options = options.schema(schema).expect("the name is a plain one").clock(clock);
    Arc::new(PostgresStore::open(options).await.expect("a fresh schema can be made"))
}
