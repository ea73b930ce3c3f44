//! Accepts in the transactions of every driver that the store knows: the same cases for each, on a real server. Each case
//! has a schema of its own.

#![expect(clippy::unwrap_used, reason = "this is a test, helpers included")]

mod bench;
mod cases;
mod driver;

use driver::Driver as _;
use libtest_mimic::Arguments;

fn main() {
    let trials = [
        cases::trials::<driver::Sqlx>(),
        cases::trials::<driver::TokioPostgres>(),
        cases::trials::<driver::SeaOrm>(),
        cases::trials::<driver::Diesel>(),
        vec![cases::trial(
            driver::SeaOrm::NAME,
            "one_connection_serves_sea_orm_and_sqlx",
            driver::one_connection_serves_sea_orm_and_sqlx,
        )],
    ];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}
