//! The crash test: real worker processes on one SQLite file or on one PostgreSQL server, killed by SIGKILL at named
//! points and at any moment between them; afterwards every accepted message must be terminal exactly once and every
//! invariant must hold. PostgreSQL itself is killed and stopped, too, and its connections are ended.
//!
//! `MAILSLOT_CRASH_KILLS` sets how many kills (default 500), `MAILSLOT_CRASH_SECONDS` how long the storm on PostgreSQL
//! lasts (default 45), `MAILSLOT_CRASH_SEED` where they fall. The same executable plays the worker and the producer when
//! its role is set in the environment.

mod backend;
mod fence;
mod journal;
mod kill;
mod process;
mod produce;
mod round;
mod storm;
mod stuck;
mod verify;
mod worker;
mod workload;

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(role) = process::Role::from_env() {
        return worker::main(role);
    }
    let trial = |name: &str, test: fn() -> Result<(), Failed>| Trial::test(name, test);
    let trials = vec![
        trial("crash::named_points_lose_nothing", round::named_points_lose_nothing),
        trial("crash::random_moments_lose_nothing", round::random_moments_lose_nothing),
        trial("crash::several_workers_on_one_file_lose_nothing", round::several_workers_lose_nothing),
        trial("crash::a_message_that_kills_its_worker_ends_as_crashed", round::a_crash_loop_ends),
        trial("crash::postgres_named_points_lose_nothing", round::postgres_named_points_lose_nothing),
        trial(
            "crash::postgres_a_message_that_kills_its_worker_ends_as_crashed",
            round::postgres_crash_loop_ends,
        ),
        trial("crash::postgres_a_storm_loses_nothing", storm::loses_nothing),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
