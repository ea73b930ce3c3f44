//! How PostgreSQL runs the statements of accepts, claims and settlements: by keys, whatever it believes to know about the
//! size of the tables. Costs are counted in pages that were looked at, which does not depend on the machine.

use crate::PostgresOptions;
use crate::connection::{Connections, Lent, Sessions};
use crate::migrate;
use crate::queries::{self, Query, Statements};
use mailslot_testkit::servers;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use std::sync::Arc;

/// What is run for every batch, on the connections for it.
const HOT: &[(&str, Query)] = &[
    ("delivery/claim", queries::DELIVERY_CLAIM),
    ("delivery/forget", queries::DELIVERY_FORGET),
    ("delivery/give_up", queries::DELIVERY_GIVE_UP),
    ("delivery/keep", queries::DELIVERY_KEEP),
    ("delivery/look_up", queries::DELIVERY_LOOK_UP),
    ("delivery/purge", queries::DELIVERY_PURGE),
    ("delivery/record", queries::DELIVERY_RECORD),
    ("lease/exchange", queries::LEASE_EXCHANGE),
    ("lease/extend", queries::LEASE_EXTEND),
    ("lease/members", queries::LEASE_MEMBERS),
    ("lease/settle", queries::LEASE_SETTLE),
    ("ledger/delete", queries::LEDGER_DELETE),
    ("ledger/find", queries::LEDGER_FIND),
    ("message/accept", queries::MESSAGE_ACCEPT),
    ("message/claim", queries::MESSAGE_CLAIM),
    ("message/keys", queries::MESSAGE_KEYS),
    ("outcome/find_suspects", queries::OUTCOME_FIND_SUSPECTS),
    ("parked/promote", queries::PARKED_PROMOTE),
    ("ready/delete", queries::READY_DELETE),
    ("ready/next_due", queries::READY_NEXT_DUE),
    ("ready/pick", queries::READY_PICK),
    ("session/advance", queries::SESSION_ADVANCE),
    ("session/delete_released", queries::SESSION_DELETE_RELEASED),
    ("session/find", queries::SESSION_FIND),
    ("session/lock", queries::SESSION_LOCK),
];

/// What operators run by keys, with the same plans forbidden. There are few leases, so they are looked through.
const BY_KEYS: &[(&str, Query)] = &[
    ("lease/request_cancel", queries::LEASE_REQUEST_CANCEL),
    ("message/delete", queries::MESSAGE_DELETE),
    ("message/find_id", queries::MESSAGE_FIND_ID),
    ("message/find_last", queries::MESSAGE_FIND_LAST),
    ("message/find_newest", queries::MESSAGE_FIND_NEWEST),
    ("message/find_oldest", queries::MESSAGE_FIND_OLDEST),
    ("message/find_selected_newest", queries::MESSAGE_FIND_SELECTED_NEWEST),
    ("message/find_selected_oldest", queries::MESSAGE_FIND_SELECTED_OLDEST),
    ("message/read", queries::MESSAGE_READ),
    ("message/slots", queries::MESSAGE_SLOTS),
    ("outcome/delete", queries::OUTCOME_DELETE),
    ("outcome/read", queries::OUTCOME_READ),
    ("session/list", queries::SESSION_LIST),
];

/// A schema and a connection as accepts and claims have it.
struct Bench {
    schema: String,
    statements: Statements,
    pinned: Arc<Connections>,
}

impl Bench {
    async fn new() -> Self {
        let schema = servers::fresh_schema();
        let options: PostgresOptions = servers::shared().parse().unwrap();
        let options = options.schema(schema.clone()).unwrap();
        migrate::prepare(&options).await.unwrap();
        let statements = Statements::of_schema(&schema);
        Self { schema, statements, pinned: Connections::pinned(&options, Sessions::Own) }
    }

    async fn connection(&self) -> Lent {
        self.pinned.single("test").await.unwrap()
    }

    fn sql(&self, text: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(text.replace("mailslot.", &format!("{}.", self.schema)))
    }

    async fn run(&self, text: &str) {
        let mut db = self.connection().await;
        db.execute(sqlx::raw_sql(self.sql(text))).await.unwrap();
        db.finish().await.unwrap();
    }

    /// The plan that is kept for a statement, whatever its parameters, with settings.
    async fn plan(&self, query: Query, settings: &str) -> String {
        let sql = self.statements.get(query).as_str();
        let parameters = (1..40).rev().find(|n| sql.contains(&format!("${n}"))).unwrap_or_default();
        let nulls =
            if parameters > 0 { format!("({})", vec!["NULL"; parameters].join(", ")) } else { String::new() };
        let mut db = self.connection().await;
        let prepare = format!("SET plan_cache_mode = force_generic_plan; {settings} PREPARE hot AS {sql}");
        db.execute(sqlx::raw_sql(AssertSqlSafe(prepare))).await.unwrap();
        let explain = AssertSqlSafe(format!("EXPLAIN (COSTS off) EXECUTE hot{nulls}"));
        let lines = db.fetch_all(sqlx::raw_sql(explain)).await.unwrap();
        // Not given back: a prepared statement is left in it.
        lines.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
    }

    /// How many pages of `ready` a claim of 100 messages of lane 1 looks at, from a due time on. It takes nothing.
    async fn pages_of_a_claim(&self, since: i64) -> u64 {
        let mut db = self.pinned.begin("test").await.unwrap();
        let sql = self.statements.get(queries::LEASE_EXCHANGE).as_str();
        let prepare = format!("SET LOCAL plan_cache_mode = force_generic_plan; PREPARE claim AS {sql}");
        db.execute(sqlx::raw_sql(AssertSqlSafe(prepare))).await.unwrap();
        let explain = format!(
            "EXPLAIN (ANALYZE, BUFFERS, TIMING off, SUMMARY off) EXECUTE claim(NULL, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', \
             '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', 100, '{{1,1,1}}', '{{0,1,2}}', '{{5,5,5}}', \
             '{{{since},{since},{since}}}', NULL, gen_random_uuid(), 'test', 60000000)"
        );
        let rows = db.fetch_all(sqlx::raw_sql(AssertSqlSafe(explain))).await.unwrap();
        drop(db);
        let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let scans = lines.iter().enumerate().filter(|(_, line)| line.contains("using ready_pkey"));
        scans.map(|(index, _)| pages(&lines[index + 1..])).sum()
    }
}

/// The pages of the node whose details these lines begin with.
fn pages(details: &[String]) -> u64 {
    let line = details.iter().find(|line| line.contains("Buffers: ") || line.contains("->"));
    let numbers = line.filter(|line| line.contains("Buffers: ")).into_iter().flat_map(|line| line.split(' '));
    numbers
        .filter_map(|part| part.strip_prefix("hit=").or(part.strip_prefix("read="))?.parse::<u64>().ok())
        .sum()
}

const FILL: &str = "
    INSERT INTO mailslot.lane (endpoint, contract, version) SELECT 'e', 'c' || n, 1 FROM generate_series(1, 3) AS n
    ON CONFLICT DO NOTHING;
    INSERT INTO mailslot.message (seq, accepted_at, id, lane, priority, key_policy, id_supplied, payload)
    SELECT n, n, gen_random_uuid(), 1, 1, 0, false, 'x' FROM generate_series(1, 20000) AS n;
    INSERT INTO mailslot.ledger (key, seq, recorded_at, fingerprint, kind)
    SELECT sha256(n::text::bytea), n, n, 'x', 1 FROM generate_series(1, 20000) AS n;
    INSERT INTO mailslot.delivery (key, recorded_at, seq, endpoint, message_id)
    SELECT sha256(n::text::bytea), n, CASE WHEN n % 10 = 0 THEN n END, 'e', n::text FROM generate_series(1, 20000) AS n;
    INSERT INTO mailslot.outcome (seq, generation, attempt, kind, at) SELECT n, 0, 1, 4, n FROM generate_series(1, 10000) AS n;
    INSERT INTO mailslot.ready (seq, lane, priority, due_at, generation, attempt, key_policy)
    SELECT n, 1, 1, n, 0, 0, 0 FROM generate_series(10001, 20000) AS n;";

async fn assert_keys(bench: &Bench, state: &str) {
    for (name, query) in HOT {
        let plan = bench.plan(*query, "").await;
        let slow: Vec<_> = plan.lines().filter(|line| is_slow(line)).collect();
        assert!(slow.is_empty(), "{name} on {state} tables: {slow:?}\n{plan}");
    }
    for (name, query) in BY_KEYS {
        let plan = bench.plan(*query, "").await;
        let lines = plan.lines().filter(|line| !line.contains("Seq Scan on lease"));
        let slow: Vec<_> = lines.filter(|line| is_slow(line)).collect();
        assert!(slow.is_empty(), "{name} on {state} tables: {slow:?}\n{plan}");
    }
}

fn is_slow(line: &str) -> bool {
    let scans = line.contains("Seq Scan on") || line.contains("Bitmap Heap Scan");
    scans || line.contains("Hash Join") || line.contains("Merge Join") || line.contains("JIT")
}

/// Retention finds what ended in some time by the index of times, and all else by keys.
async fn assert_times(bench: &Bench, state: &str) {
    let plan = bench.plan(queries::OUTCOME_FIND_EXPIRED, "SET enable_bitmapscan = on;").await;
    let slow: Vec<_> = plan.lines().filter(|line| is_slow(line) && !line.contains("Bitmap")).collect();
    assert!(slow.is_empty(), "outcome/find_expired on {state} tables: {slow:?}\n{plan}");
    let by_times =
        plan.lines().filter(|line| line.contains("Bitmap Index Scan on") && line.contains("_at_idx"));
    assert_eq!(by_times.count(), 2, "once in each partition, on {state} tables:\n{plan}");
}

#[tokio::test]
async fn hot_statements_go_by_keys_on_empty_small_and_large_tables_analysed_or_not() {
    let bench = Bench::new().await;
    assert_keys(&bench, "empty").await;
    bench.run("ANALYZE").await;
    assert_keys(&bench, "empty and analysed").await;
    bench.run(FILL).await;
    assert_keys(&bench, "filled since they were analysed").await;
    bench.run("ANALYZE").await;
    assert_keys(&bench, "analysed").await;
}

#[tokio::test]
async fn retention_goes_by_times_on_empty_small_and_large_tables_analysed_or_not() {
    let bench = Bench::new().await;
    assert_times(&bench, "empty").await;
    bench.run("ANALYZE").await;
    assert_times(&bench, "empty and analysed").await;
    bench.run(FILL).await;
    assert_times(&bench, "filled since they were analysed").await;
    bench.run("ANALYZE").await;
    assert_times(&bench, "analysed").await;
}

#[tokio::test]
async fn what_else_waits_costs_a_claim_nothing() {
    let bench = Bench::new().await;
    bench.run(FILL).await;
    let alone = bench.pages_of_a_claim(i64::MIN).await;
    assert!(alone > 0, "the plan says nothing about its pages");
    // Contracts that nobody knows, and messages that are due in years.
    bench
        .run(
            "INSERT INTO mailslot.ready (seq, lane, priority, due_at, generation, attempt, key_policy)
             SELECT n, 2, 1, n, 0, 0, 0 FROM generate_series(100001, 200000) AS n;
             INSERT INTO mailslot.ready (seq, lane, priority, due_at, generation, attempt, key_policy)
             SELECT n, 1, n % 3, 4000000000000000 + n, 0, 0, 0 FROM generate_series(200001, 300000) AS n;
             INSERT INTO mailslot.parked (session, seq, due_at, lane, priority, key_policy)
             SELECT n % 100, n, n, 1, 1, 0 FROM generate_series(300001, 350000) AS n;
             INSERT INTO mailslot.outcome (seq, generation, attempt, kind, at)
             SELECT n, 0, 5, 6, n FROM generate_series(350001, 400000) AS n;",
        )
        .await;
    let among_others = bench.pages_of_a_claim(i64::MIN).await;
    // A larger index may be a level or two deeper; each of the walks then begins with that many pages more.
    assert!(among_others <= alone + 20, "{among_others} pages instead of {alone}");
}

#[tokio::test]
async fn an_old_snapshot_costs_a_claim_nothing_that_begins_where_the_last_one_ended() {
    let bench = Bench::new().await;
    bench.run(FILL).await;
    let alone = bench.pages_of_a_claim(i64::MIN).await;
    let mut old = bench.pinned.begin("test").await.unwrap();
    let look =
        bench.sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM mailslot.ready");
    old.execute(sqlx::raw_sql(look)).await.unwrap();
    // What was taken meanwhile stays in the index, because the old snapshot can still see it.
    bench
        .run(
            "INSERT INTO mailslot.ready (seq, lane, priority, due_at, generation, attempt, key_policy)
             SELECT n, 1, 1, n, 0, 0, 0 FROM generate_series(20001, 120000) AS n;",
        )
        .await;
    bench.run("DELETE FROM mailslot.ready WHERE seq <= 110000").await;
    let from_front = bench.pages_of_a_claim(i64::MIN).await;
    let from_hint = bench.pages_of_a_claim(110_000).await;
    old.roll_back().await.unwrap();
    assert!(from_front > 10 * alone, "the snapshot holds nothing: {from_front} pages");
    assert!(from_hint <= alone + 20, "{from_hint} pages instead of {alone}");
}
