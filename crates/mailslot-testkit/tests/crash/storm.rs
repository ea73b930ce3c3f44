//! The storm: producers and workers on one PostgreSQL server, all of which are killed, stalled, cut off and restarted
//! while they work. Then it is calm, a last worker finishes, and everything must be there, once.

use super::backend::{Place, Postgres};
use super::kill::POINTS;
use super::process::{Part, Role, block_on, let_pass, stall, was_killed};
use super::round::{number, pick, say, seeded};
use super::verify;
use super::worker::LEASE;
use super::workload::script;
use libtest_mimic::Failed;
use mailslot_core::SeededRandom;
use mailslot_testkit::servers::{self, PostgresConfig, PostgresServer};
use sqlx::{Connection as _, PgConnection};
use std::fmt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// How many requests each producer makes in one storm: a few seconds of them, and longer the more is broken.
const REQUESTS: u32 = 300;

const WORKERS: usize = 3;
const PRODUCERS: &[&str] = &["p1", "p2"];

/// What happened in all storms.
#[derive(Debug, Default)]
struct Tally {
    storms: u32,
    messages: usize,
    kills: u32,
    stalls: u32,
    ended_connections: u64,
    restarts: u32,
    late_verdicts: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages in {} storms: {} kills, {} stalls past the lease, {} connections ended, {} servers killed or \
             stopped, {} verdicts that came too late and changed nothing; nothing lost",
            self.messages,
            self.storms,
            self.kills,
            self.stalls,
            self.ended_connections,
            self.restarts,
            self.late_verdicts
        )
    }
}

pub(crate) fn loses_nothing() -> Result<(), Failed> {
    let seconds = number("MAILSLOT_CRASH_SECONDS", 45);
    let random = seeded(4);
    let mut server = PostgresServer::start(PostgresConfig { fsync: true, ..PostgresConfig::default() })?;
    let (begun, mut tally) = (Instant::now(), Tally::default());
    while begun.elapsed() < Duration::from_secs(seconds) {
        let dir = tempfile::tempdir()?;
        Storm::begin(dir.path(), &mut server, &random, &mut tally)?.rage()?;
        tally.storms += 1;
    }
    say(&tally.to_string());
    assert!(tally.kills > 0 && tally.restarts > 0 && tally.late_verdicts > 0, "the storm was none: {tally}");
    Ok(())
}

struct Storm<'s> {
    server: &'s mut PostgresServer,
    random: &'s SeededRandom,
    tally: &'s mut Tally,
    backend: Postgres,
    place: Place,
    workers: Vec<Child>,
    /// A producer that came to its end is gone.
    producers: Vec<(&'static str, Child)>,
}

impl<'s> Storm<'s> {
    fn begin(
        dir: &Path,
        server: &'s mut PostgresServer,
        random: &'s SeededRandom,
        tally: &'s mut Tally,
    ) -> Result<Self, Failed> {
        let (url, schema) = (server.url(), servers::fresh_schema());
        let backend = Postgres::new(dir, &url, &schema);
        block_on(super::round::make(&backend)).map_err(|error| error.to_string())?;
        let place = Place::Postgres { dir: dir.to_owned(), url, schema };
        let (workers, producers) = (Vec::new(), Vec::new());
        let mut storm = Self { server, random, tally, backend, place, workers, producers };
        for _ in 0..WORKERS {
            storm.workers.push(storm.worker()?);
        }
        for name in PRODUCERS {
            storm.producers.push((name, storm.producer(name)?));
        }
        Ok(storm)
    }

    /// One in three dies by itself at a named point.
    fn worker(&self) -> std::io::Result<Child> {
        let role = self.role(Part::Work);
        if pick(self.random, 3) > 0 {
            return role.spawn();
        }
        let point = POINTS[pick(self.random, u32::try_from(POINTS.len()).unwrap_or(1)) as usize];
        role.kill_at(format!("{point}:{}", pick(self.random, 20) + 1)).spawn()
    }

    fn producer(&self, name: &str) -> std::io::Result<Child> {
        self.role(Part::Produce(name.to_owned())).spawn()
    }

    fn role(&self, part: Part) -> Role {
        Role::new(part, &self.place, REQUESTS)
    }

    fn rage(mut self) -> Result<(), Failed> {
        while !self.producers.is_empty() {
            let_pass(Duration::from_millis(u64::from(pick(self.random, 250)) + 10));
            match pick(self.random, 20) {
                0 => self.break_server(PostgresServer::kill)?,
                1 => self.break_server(PostgresServer::stop_immediate)?,
                2..=4 => self.end_connections()?,
                5..=7 => self.stall_one()?,
                8..=10 => self.kill_producer()?,
                _ => self.kill_worker()?,
            }
            self.bury()?;
        }
        self.calm()
    }

    fn break_server(
        &mut self,
        stop: fn(&mut PostgresServer) -> Result<(), servers::ServerError>,
    ) -> Result<(), Failed> {
        stop(self.server)?;
        self.server.restart()?;
        self.tally.restarts += 1;
        Ok(())
    }

    /// Ends some connections of whomever.
    fn end_connections(&mut self) -> Result<(), Failed> {
        const END: &str = "SELECT count(pg_terminate_backend(pid)) FROM (\
                               SELECT pid FROM pg_stat_activity \
                               WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
                               ORDER BY random() LIMIT $1) AS picked";
        let most = i64::from(pick(self.random, 8)) + 1;
        let ended: i64 = block_on(async {
            let mut db = PgConnection::connect(&self.server.url()).await?;
            sqlx::query_scalar(END).bind(most).fetch_one(&mut db).await
        })?;
        self.tally.ended_connections += ended.unsigned_abs();
        Ok(())
    }

    fn stall_one(&mut self) -> Result<(), Failed> {
        let index = self.pick_worker();
        if self.workers[index].try_wait()?.is_none() {
            stall(&self.workers[index], LEASE * 3 / 2)?;
            self.tally.stalls += 1;
        }
        Ok(())
    }

    fn kill_worker(&mut self) -> Result<(), Failed> {
        let index = self.pick_worker();
        Ok(self.workers[index].kill()?)
    }

    fn pick_worker(&self) -> usize {
        pick(self.random, u32::try_from(self.workers.len()).unwrap_or(1)) as usize
    }

    fn kill_producer(&mut self) -> Result<(), Failed> {
        let index = pick(self.random, u32::try_from(self.producers.len()).unwrap_or(1)) as usize;
        Ok(self.producers[index].1.kill()?)
    }

    /// Replaces those that are dead, and lets go those that came to their end. One that was killed a moment ago may be
    /// met at the next look.
    fn bury(&mut self) -> Result<(), Failed> {
        for index in 0..self.workers.len() {
            if let Some(status) = self.workers[index].try_wait()? {
                assert!(was_killed(status), "a worker works until it is killed");
                self.tally.kills += 1;
                self.workers[index] = self.worker()?;
            }
        }
        for (name, mut child) in std::mem::take(&mut self.producers) {
            match child.try_wait()? {
                Some(status) if was_killed(status) => {
                    self.tally.kills += 1;
                    self.producers.push((name, self.producer(name)?));
                }
                Some(_) => {}
                None => self.producers.push((name, child)),
            }
        }
        Ok(())
    }

    /// Kills everybody, lets one last worker finish, and looks at what is there.
    fn calm(mut self) -> Result<(), Failed> {
        for worker in &mut self.workers {
            worker.kill()?;
            self.tally.kills += u32::from(was_killed(worker.wait()?));
        }
        assert!(!was_killed(self.role(Part::Finish).run()?), "nobody kills the last worker");
        let requests = PRODUCERS.iter().flat_map(|name| script(name, REQUESTS)).collect();
        let (messages, late) = block_on(verify::nothing_is_lost(&self.backend, requests));
        self.tally.messages += messages;
        self.tally.late_verdicts += late;
        Ok(())
    }
}

impl Drop for Storm<'_> {
    fn drop(&mut self) {
        // Those of a storm that failed.
        let producers = self.producers.iter_mut().map(|(_, child)| child);
        for child in self.workers.iter_mut().chain(producers) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
