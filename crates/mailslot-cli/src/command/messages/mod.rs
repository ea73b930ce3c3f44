//! `mailslot messages`.

mod change;
mod list;
mod show;
mod why;

use crate::args::Global;
use crate::command::redrive;
use crate::error::Error;
use clap::Subcommand;
use mailslot::store::Change;

/// Look at messages and change them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List messages, page by page
    List(Box<list::Args>),
    /// Show a message, why it waits, and what happened to it
    Show(show::Args),
    /// Try dead letters again, with fresh attempts, all at once
    Requeue(Box<change::Args>),
    /// Try dead letters again at a rate: the same as `mailslot redrive`
    #[command(subcommand)]
    Redrive(redrive::Command),
    /// Give dead letters up for good and let their sessions go on
    Skip(Box<change::Args>),
    /// End messages that have not ended; a running one is told by its worker's next heartbeat
    Cancel(Box<change::Args>),
    /// Delete messages with their history and keys; leased ones stay
    Purge(Box<change::PurgeArgs>),
}

/// Does what was asked.
pub(crate) async fn run(command: Command, global: &Global) -> Result<(), Error> {
    match command {
        Command::List(args) => list::run(*args, global).await,
        Command::Show(args) => show::run(args, global).await,
        Command::Requeue(args) => change::run(Change::Requeue, *args, global).await,
        Command::Redrive(command) => redrive::run(command, global).await,
        Command::Skip(args) => change::run(Change::Skip, *args, global).await,
        Command::Cancel(args) => change::run(Change::Cancel, *args, global).await,
        Command::Purge(args) => change::purge(*args, global).await,
    }
}
