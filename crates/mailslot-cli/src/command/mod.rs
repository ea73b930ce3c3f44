//! The commands, one file or folder each.

mod accept;
mod bench;
mod completions;
mod counts;
mod doctor;
mod exit_codes;
mod handoff;
mod leases;
mod messages;
mod migrate;
mod redrive;
mod retention;
mod sessions;
mod work;

use crate::args::Global;
use crate::demo;
use crate::error::Error;
use clap::Subcommand;

/// What `mailslot` can be told to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store messages durably and print their receipts
    Accept(accept::Args),
    /// Run a command for each message
    Work(work::Args),
    /// Look at messages and change them
    #[command(subcommand)]
    Messages(messages::Command),
    /// Try many dead letters again, at a rate
    #[command(subcommand)]
    Redrive(redrive::Command),
    /// Settle a message whose work goes on elsewhere
    #[command(subcommand)]
    Handoff(handoff::Command),
    /// List sessions and what blocks them
    Sessions(sessions::Args),
    /// List leases: which worker holds how many messages until when
    Leases(leases::Args),
    /// Count messages by endpoint, contract and state
    Counts,
    /// Show or apply for how long ended messages are kept
    #[command(subcommand)]
    Retention(retention::Command),
    /// Make the store, or bring its schema up to date
    Migrate(migrate::Args),
    /// Check the invariants of the stored data
    Doctor(doctor::Args),
    /// Measure what this machine and this database can do
    Bench(bench::Args),
    /// See what Mailslot does, in half a minute
    Demo(demo::Args),
    /// Print the completions of a shell
    Completions(completions::Args),
    /// Print what the exit codes mean
    #[command(long_about = crate::exit::exit_codes_text())]
    ExitCodes,
}

/// Does what was asked.
pub(crate) async fn run(command: Command, global: &Global) -> Result<(), Error> {
    match command {
        Command::Accept(args) => accept::run(args, global).await,
        Command::Work(args) => work::run(args, global).await,
        Command::Messages(command) => messages::run(command, global).await,
        Command::Redrive(command) => redrive::run(command, global).await,
        Command::Handoff(command) => handoff::run(command, global).await,
        Command::Sessions(args) => sessions::run(args, global).await,
        Command::Leases(args) => leases::run(args, global).await,
        Command::Counts => counts::run(global).await,
        Command::Retention(command) => retention::run(command, global).await,
        Command::Migrate(args) => migrate::run(args, global).await,
        Command::Doctor(args) => doctor::run(args, global).await,
        Command::Bench(args) => bench::run(args, global).await,
        Command::Demo(args) => Ok(demo::run(args, global.json).await?),
        Command::Completions(args) => completions::run(args),
        Command::ExitCodes => exit_codes::run(global),
    }
}
