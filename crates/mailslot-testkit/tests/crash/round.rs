//! Rounds: start workers, kill them, start others, until one gets to the end of the work; then verify.

use super::backend::{Backend, BoxError, Place, Postgres, Sqlite};
use super::kill::POINTS;
use super::process::{Part, Role, block_on, kill_after, let_pass, stall, was_killed};
use super::verify;
use super::worker::{EVERYBODY, LEASE};
use super::workload::{Kind, Step, script};
use libtest_mimic::Failed;
use mailslot_core::{Random as _, SeededRandom};
use mailslot_engine::Inbox;
use mailslot_testkit::servers::{self, PostgresConfig, PostgresServer};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Child;
use std::time::Duration;

/// How many requests one round accepts.
const REQUESTS: u32 = 120;

/// The fewest kills at each named point.
const PER_POINT: u64 = 5;

pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// How many kills one trial does: the total is split over the trials that count them.
fn kills_wanted() -> u64 {
    number("MAILSLOT_CRASH_KILLS", 500).div_ceil(3)
}

pub(crate) fn seeded(trial: u64) -> SeededRandom {
    let seed = number("MAILSLOT_CRASH_SEED", 20_261_130);
    say(&format!("seed {seed}: MAILSLOT_CRASH_SEED={seed} repeats these kills"));
    SeededRandom::new(seed.wrapping_add(trial))
}

pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "crash test: {line}");
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small non-negative number")]
pub(crate) fn pick(random: &SeededRandom, below: u32) -> u32 {
    (random.unit() * f64::from(below)) as u32
}

/// What a round runs on: a backend here, and its place for other processes.
struct Round<B> {
    _dir: tempfile::TempDir,
    backend: B,
    place: Place,
}

fn on_sqlite() -> Result<Round<Sqlite>, Failed> {
    let dir = tempfile::tempdir()?;
    let place = Place::Sqlite { dir: dir.path().to_owned() };
    prepare(Sqlite::new(dir.path()), place, dir)
}

fn on_postgres(server: &PostgresServer) -> Result<Round<Postgres>, Failed> {
    let (dir, schema) = (tempfile::tempdir()?, servers::fresh_schema());
    let backend = Postgres::new(dir.path(), &server.url(), &schema);
    let place = Place::Postgres { dir: dir.path().to_owned(), url: server.url(), schema };
    prepare(backend, place, dir)
}

fn prepare<B: Backend>(backend: B, place: Place, dir: tempfile::TempDir) -> Result<Round<B>, Failed> {
    block_on(make(&backend)).map_err(|error| error.to_string())?;
    Ok(Round { _dir: dir, backend, place })
}

/// Makes the tables of the inbox and of the application.
pub(crate) async fn make<B: Backend>(backend: &B) -> Result<(), BoxError> {
    drop(backend.open().await?);
    backend.make_tables().await
}

impl<B: Backend> Round<B> {
    fn role(&self) -> Role {
        Role::new(Part::All, &self.place, REQUESTS)
    }

    /// Runs a worker to the end of the work, and looks at what is there.
    fn finish(&self) -> Result<(), Failed> {
        assert!(!was_killed(self.role().run()?), "nobody kills the last worker");
        block_on(verify::nothing_is_lost(&self.backend, script(EVERYBODY, REQUESTS).collect()));
        Ok(())
    }
}

fn server() -> Result<PostgresServer, Failed> {
    Ok(PostgresServer::start(PostgresConfig { fsync: true, ..PostgresConfig::default() })?)
}

pub(crate) fn named_points_lose_nothing() -> Result<(), Failed> {
    kill_at_points(on_sqlite, kills_wanted())
}

pub(crate) fn postgres_named_points_lose_nothing() -> Result<(), Failed> {
    let server = server()?;
    kill_at_points(|| on_postgres(&server), kills_wanted() / 2)
}

/// Each named point in turn, at a random one of its passings, until enough were killed.
fn kill_at_points<B: Backend>(
    round: impl Fn() -> Result<Round<B>, Failed>,
    wanted: u64,
) -> Result<(), Failed> {
    let random = seeded(1);
    let mut by_point: BTreeMap<&str, u64> = POINTS.iter().map(|&point| (point, 0)).collect();
    let mut points = POINTS.to_vec();
    while by_point.values().sum::<u64>() < wanted || by_point.values().any(|&kills| kills < PER_POINT) {
        let round = round()?;
        for &point in points.iter().take(POINTS.len() / 2) {
            let role = round.role().kill_at(format!("{point}:{}", pick(&random, 4) + 1));
            *by_point.entry(point).or_default() += u64::from(was_killed(role.run()?));
        }
        round.finish()?;
        // The work of a round ends at some time, so each round begins at the points that were reached least.
        points.sort_by_key(|point| by_point[point]);
    }
    let kills: u64 = by_point.values().sum();
    for (point, kills) in by_point {
        say(&format!("{kills:4} kills at {point}"));
    }
    say(&format!("{kills} kills at named points, nothing lost"));
    Ok(())
}

/// At any moment: after a random time since the worker's start.
pub(crate) fn random_moments_lose_nothing() -> Result<(), Failed> {
    let random = seeded(2);
    let mut kills = 0;
    while kills < kills_wanted() {
        let round = on_sqlite()?;
        for _ in 0..12 {
            let mut worker = round.role().spawn()?;
            kills += u64::from(kill_after(&mut worker, random_moment(&random))?);
        }
        round.finish()?;
    }
    say(&format!("{kills} kills at random moments, nothing lost"));
    Ok(())
}

fn random_moment(random: &SeededRandom) -> Duration {
    Duration::from_millis(u64::from(pick(random, 120)) + 5)
}

/// Three workers at once, killed one after the other while the others go on; some are stopped past their lease first.
pub(crate) fn several_workers_lose_nothing() -> Result<(), Failed> {
    let random = seeded(3);
    let (mut kills, mut stalls) = (0, 0);
    while kills < kills_wanted() {
        let round = on_sqlite()?;
        let start = || -> std::io::Result<Child> { round.role().spawn() };
        let mut workers = [start()?, start()?, start()?];
        for turn in 0..12 {
            let worker = &mut workers[turn % 3];
            if turn == 5 {
                let_pass(random_moment(&random));
                stall(worker, LEASE * 3 / 2)?;
                stalls += 1;
            }
            kills += u64::from(kill_after(worker, random_moment(&random))?);
            *worker = start()?;
        }
        for worker in &mut workers {
            assert!(worker.wait()?.success(), "a worker failed");
        }
        round.finish()?;
    }
    say(&format!("{kills} kills and {stalls} stalls past the lease among three workers, nothing lost"));
    Ok(())
}

pub(crate) fn a_crash_loop_ends() -> Result<(), Failed> {
    crash_loop(&on_sqlite()?)
}

pub(crate) fn postgres_crash_loop_ends() -> Result<(), Failed> {
    let server = PostgresServer::start(PostgresConfig::default())?;
    crash_loop(&on_postgres(&server)?)
}

/// A message that kills its process each time uses up its own attempts and ends as `crashed`.
fn crash_loop<B: Backend>(round: &Round<B>) -> Result<(), Failed> {
    const ATTEMPTS: u32 = 3;
    block_on(async {
        let store = round.backend.open().await.expect("the store opens");
        let inbox = Inbox::builder(store).contract::<Step>().build().expect("it builds");
        for (place, kind) in [(0, Kind::Deadly), (1, Kind::Plain), (2, Kind::Plain)] {
            let step = Step { request: "loop".to_owned(), nonce: 0, place, of: 3, kind };
            inbox.accept(&step).await.expect("it is accepted");
        }
    });
    let worker = Role { part: Part::Finish, attempts_max: ATTEMPTS, ..round.role() };
    let mut deaths = 0;
    while was_killed(worker.run()?) {
        deaths += 1;
        assert!(deaths <= ATTEMPTS, "it killed more workers than it has attempts");
    }
    assert_eq!(deaths, ATTEMPTS);
    block_on(verify::crashed_after(&round.backend, ATTEMPTS));
    Ok(())
}
