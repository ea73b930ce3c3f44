//! Accepts in the transactions of every driver that the store knows: the same cases for each, on a real server, and behind
//! a pooler for those that need nothing there. Each case has a schema of its own.

#![expect(clippy::unwrap_used, reason = "this is a test, helpers included")]

mod bench;
mod cases;
mod driver;

use bench::Place;
use driver::Driver as _;
use libtest_mimic::Arguments;

fn main() {
    let trials = [
        cases::trials::<driver::Sqlx>(Place::Direct),
        cases::trials::<driver::TokioPostgres>(Place::Direct),
        cases::trials::<driver::SeaOrm>(Place::Direct),
        cases::trials::<driver::Diesel>(Place::Direct),
        cases::trials::<driver::Sqlx>(Place::BehindPooler),
        cases::trials::<driver::TokioPostgres>(Place::BehindPooler),
        vec![cases::trial(
            driver::SeaOrm::NAME,
            Place::Direct,
            "one_connection_serves_sea_orm_and_sqlx",
            driver::one_connection_serves_sea_orm_and_sqlx,
        )],
    ];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}
