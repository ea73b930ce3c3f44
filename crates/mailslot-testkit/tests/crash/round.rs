//! Rounds: start workers, kill them, start others, until one gets to the end of the work; then verify.

use super::kill::POINTS;
use super::verify;
use super::worker::{LEASE, Role};
use super::workload::{Kind, Step};
use libtest_mimic::Failed;
use mailslot_core::{Random, SeededRandom};
use mailslot_engine::Inbox;
use mailslot_store_sqlite::SqliteStore;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// Attempts that no number of kills uses up.
const PLENTY: u32 = 1_000;

/// The fewest kills at each named point.
const PER_POINT: u64 = 5;

/// SIGKILL.
const KILLED: i32 = 9;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// How many kills one trial does: the total is split over the three trials that kill.
fn kills_wanted() -> u64 {
    number("MAILSLOT_CRASH_KILLS", 500).div_ceil(3)
}

fn seeded(trial: u64) -> SeededRandom {
    let seed = number("MAILSLOT_CRASH_SEED", 20_261_130);
    say(&format!("seed {seed}: MAILSLOT_CRASH_SEED={seed} repeats these kills"));
    SeededRandom::new(seed.wrapping_add(trial))
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "crash test: {line}");
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small non-negative number")]
fn pick(random: &SeededRandom, below: u32) -> u32 {
    (random.unit() * f64::from(below)) as u32
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(future)
}

async fn prepare(dir: &Path) -> SqliteStore {
    let store = SqliteStore::connect(&dir.join("inbox.db").to_string_lossy()).await.expect("the store opens");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.join("inbox.db"));
    let mut connection = sqlx::ConnectOptions::connect(&options).await.expect("the file opens");
    // No key on the column: a step that commits twice must show as two rows.
    sqlx::query("CREATE TABLE effect (step INTEGER NOT NULL)")
        .execute(&mut connection)
        .await
        .expect("it is made");
    store
}

fn role(dir: &Path, kill: &str) -> Role {
    Role { dir: dir.to_owned(), kill: kill.to_owned(), attempts_max: PLENTY, accepts: true }
}

fn was_killed(status: ExitStatus) -> bool {
    let killed = status.signal() == Some(KILLED);
    assert!(killed || status.success(), "a worker neither finished nor was killed: {status}");
    killed
}

/// Runs a worker to the end of the work.
fn finish(dir: &Path) {
    let status = role(dir, "").command().status().expect("the worker starts");
    assert!(status.success(), "the last worker failed: {status}");
    block_on(verify::nothing_is_lost(dir));
}

/// Each named point in turn, at a random one of its passings, until enough were killed.
pub(crate) fn named_points_lose_nothing() -> Result<(), Failed> {
    let random = seeded(1);
    let mut by_point: BTreeMap<&str, u64> = POINTS.iter().map(|&point| (point, 0)).collect();
    let mut points = POINTS.to_vec();
    while by_point.values().sum::<u64>() < kills_wanted() || by_point.values().any(|&kills| kills < PER_POINT)
    {
        let dir = tempfile::tempdir()?;
        block_on(prepare(dir.path()));
        for &point in points.iter().take(POINTS.len() / 2) {
            let kill = format!("{point}:{}", pick(&random, 4) + 1);
            let status = role(dir.path(), &kill).command().status()?;
            *by_point.entry(point).or_default() += u64::from(was_killed(status));
        }
        finish(dir.path());
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
        let dir = tempfile::tempdir()?;
        block_on(prepare(dir.path()));
        for _ in 0..12 {
            let mut worker = role(dir.path(), "").command().spawn()?;
            kills += u64::from(kill_after(&mut worker, random_moment(&random))?);
        }
        finish(dir.path());
    }
    say(&format!("{kills} kills at random moments, nothing lost"));
    Ok(())
}

fn random_moment(random: &SeededRandom) -> Duration {
    Duration::from_millis(u64::from(pick(random, 120)) + 5)
}

/// The one wait in this test that is no signal: its length is the point of it.
fn kill_after(worker: &mut Child, moment: Duration) -> std::io::Result<bool> {
    block_on(async { tokio::time::sleep(moment).await });
    worker.kill()?;
    Ok(was_killed(worker.wait()?))
}

/// Stops a worker for longer than its lease and lets it go on: what it decides then comes too late.
fn stall_after(worker: &Child, moment: Duration) -> Result<(), Failed> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(worker.id()).ok().and_then(Pid::from_raw).ok_or("a worker has a process id")?;
    block_on(async { tokio::time::sleep(moment).await });
    kill_process(pid, Signal::STOP)?;
    block_on(async { tokio::time::sleep(LEASE * 3 / 2).await });
    kill_process(pid, Signal::CONT)?;
    Ok(())
}

/// Three workers at once, killed one after the other while the others go on; some are stopped past their lease first.
pub(crate) fn several_workers_lose_nothing() -> Result<(), Failed> {
    let random = seeded(3);
    let (mut kills, mut stalls) = (0, 0);
    while kills < kills_wanted() {
        let dir = tempfile::tempdir()?;
        block_on(prepare(dir.path()));
        let start = || role(dir.path(), "").command().spawn();
        let mut workers = [start()?, start()?, start()?];
        for turn in 0..12 {
            let worker = &mut workers[turn % 3];
            if turn == 5 {
                stall_after(worker, random_moment(&random))?;
                stalls += 1;
            }
            kills += u64::from(kill_after(worker, random_moment(&random))?);
            *worker = start()?;
        }
        for worker in &mut workers {
            assert!(worker.wait()?.success(), "a worker failed");
        }
        finish(dir.path());
    }
    say(&format!("{kills} kills and {stalls} stalls past the lease among three workers, nothing lost"));
    Ok(())
}

/// A message that kills its process each time uses up its own attempts and ends as `crashed`.
pub(crate) fn a_crash_loop_ends() -> Result<(), Failed> {
    const ATTEMPTS: u32 = 3;
    let dir = tempfile::tempdir()?;
    block_on(async {
        let store = prepare(dir.path()).await;
        let inbox = Inbox::builder(store).contract::<Step>().build().expect("it builds");
        for (index, kind) in [(0, Kind::Deadly), (1, Kind::Plain), (2, Kind::Plain)] {
            inbox.accept(&Step { index, kind }).await.expect("it is accepted");
        }
    });
    let worker = Role { attempts_max: ATTEMPTS, accepts: false, ..role(dir.path(), "") };
    let mut deaths = 0;
    while was_killed(worker.command().status()?) {
        deaths += 1;
        assert!(deaths <= ATTEMPTS, "it killed more workers than it has attempts");
    }
    assert_eq!(deaths, ATTEMPTS);
    block_on(verify::crashed_after(dir.path(), ATTEMPTS));
    Ok(())
}
