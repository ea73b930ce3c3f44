//! The handlers of the demo, and the faults that they have until they are repaired.

use super::effects::Effects;
use super::notice::Notice;
use mailslot::{AnyStore, Context, Contract, HandlerError, HandlerOptions, InboxBuilder, Raw, Retry, State};
use std::time::Duration;

/// Whether the handlers still have their faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Handlers {
    /// Some fail, and one kills the process.
    Faulty,
    /// All succeed.
    Repaired,
}

impl Handlers {
    /// How the command line spells it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Faulty => "faulty",
            Self::Repaired => "repaired",
        }
    }
}

/// Their handlers fail at the first attempt.
pub(super) const SHAKY: [&str; 2] = ["github.push", "github.status"];
/// Its handler always fails. None of its webhooks belongs to a repository, so it holds up no session.
pub(super) const BROKEN: &str = "github.installation";
/// Its handler kills the process. There is one such webhook, in a session of its own.
pub(super) const DEADLY: &str = "github.deployment_review";

/// How often any other is tried: each crash costs an attempt to those that were claimed with the deadly one, so they
/// need more attempts than it has.
const ATTEMPTS: u32 = 10;
/// How often the broken one is tried: more than the deadly one too, or it might end as crashed.
pub(super) const ATTEMPTS_BROKEN: u32 = 6;
/// How often the deadly one is tried.
pub(super) const ATTEMPTS_DEADLY: u32 = 3;
/// How long a failed one waits.
pub(super) const RETRY: Duration = Duration::from_millis(100);
/// How long a handler takes: as long as a call to a service nearby.
const EFFORT: Duration = Duration::from_millis(10);

/// Registers a handler for each contract.
pub(super) fn register(
    builder: InboxBuilder<AnyStore>,
    contracts: impl IntoIterator<Item = Contract>,
    handlers: Handlers,
) -> InboxBuilder<AnyStore> {
    contracts.into_iter().fold(builder, |builder, contract| {
        let name = contract.name().to_owned();
        match handlers {
            Handlers::Faulty if SHAKY.contains(&&*name) => {
                builder.raw_handler(contract, shaky, attempts(ATTEMPTS))
            }
            Handlers::Faulty if name == BROKEN => {
                builder.raw_handler(contract, broken, attempts(ATTEMPTS_BROKEN))
            }
            Handlers::Faulty if name == DEADLY => {
                builder.raw_handler(contract, deadly, attempts(ATTEMPTS_DEADLY))
            }
            _ => builder.raw_handler(contract, sound, attempts(ATTEMPTS)),
        }
    })
}

fn attempts(attempts: u32) -> HandlerOptions {
    HandlerOptions::new().retry(Retry::fixed(RETRY).max_attempts(attempts))
}

async fn sound(_: Raw, context: Context, State(effects): State<Effects>) -> Result<(), HandlerError> {
    tokio::time::sleep(EFFORT).await;
    Ok(effects.add(&context)?)
}

async fn shaky(raw: Raw, context: Context, effects: State<Effects>) -> Result<(), HandlerError> {
    if context.attempt().number == 1 {
        return Err("the build service answers 429, too many requests".into());
    }
    sound(raw, context, effects).await
}

async fn broken(_: Raw) -> Result<(), HandlerError> {
    Err("the account service answers 503, unavailable".into())
}

async fn deadly(_: Raw, context: Context) -> Result<(), HandlerError> {
    let contract = context.envelope().contract.clone();
    // Meanwhile its neighbours work: some are done, and some have had their effect and are not recorded yet.
    tokio::time::sleep(EFFORT).await;
    Notice::Dying { contract, attempt: context.attempt().number }.send();
    die();
    Err("the process survived its own death".into())
}

/// Ends the process at once: no destructor runs, nothing is given back.
#[cfg(unix)]
fn die() {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Ends the process at once: no destructor runs, nothing is given back.
#[cfg(not(unix))]
fn die() {
    std::process::abort();
}
