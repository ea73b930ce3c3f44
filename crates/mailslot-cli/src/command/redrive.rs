//! `mailslot redrive`.

use crate::args::Global;
use crate::error::Error;
use crate::exit::Exit;
use crate::filter::FilterArgs;
use crate::output::{Cell, Output, Table, counted, time};
use crate::progress;
use crate::store::open_operator;
use clap::Subcommand;
use mailslot::Operator;
use mailslot::store::{Redrive, RedriveAction, RedriveId, RedriveSpec, RedriveState};
use std::time::Duration;

/// How often a watched redrive is looked at, and driven: the pace of a worker's own maintenance.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Any running worker advances a redrive, and it survives restarts.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Begin to requeue the dead letters that match
    Start(Box<StartArgs>),
    /// List redrives, the newest first
    List,
    /// Stop one for now
    Pause {
        /// Its number
        id: String,
    },
    /// Let a paused one go on
    Resume {
        /// Its number
        id: String,
    },
    /// Stop one for good; what was requeued stays requeued
    Cancel {
        /// Its number
        id: String,
    },
    /// Follow one until it is over
    Watch {
        /// Its number
        id: String,
        /// Advance it from here: for a store on which no worker runs
        #[arg(long)]
        drive: bool,
    },
}

/// What to redrive, and how fast.
#[derive(Debug, clap::Args)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// How many messages a second
    #[arg(long, value_name = "N")]
    rate: u32,
    /// Follow it until it is over
    #[arg(long)]
    follow: bool,
    /// Advance it from here until it is over: for a store on which no worker runs
    #[arg(long)]
    drive: bool,
}

/// Does what was asked.
pub(crate) async fn run(command: Command, global: &Global) -> Result<(), Error> {
    let operator = open_operator(global).await?;
    let output = Output::new(global);
    match command {
        Command::Start(args) => start(&operator, *args, global).await,
        Command::List => list(output, &operator.redrives().await?),
        Command::Pause { id } => act(&operator, output, &id, RedriveAction::Pause).await,
        Command::Resume { id } => act(&operator, output, &id, RedriveAction::Resume).await,
        Command::Cancel { id } => act(&operator, output, &id, RedriveAction::Cancel).await,
        Command::Watch { id, drive } => watch(&operator, id.parse()?, drive, global).await,
    }
}

async fn start(operator: &Operator, args: StartArgs, global: &Global) -> Result<(), Error> {
    let spec = RedriveSpec { filter: args.filter.filter(&[])?, rate: args.rate };
    let redrive = operator.redrive(spec).await?;
    if args.follow || args.drive {
        return watch(operator, redrive.id, args.drive, global).await;
    }
    print(Output::new(global), &redrive)
}

async fn act(operator: &Operator, output: Output, id: &str, action: RedriveAction) -> Result<(), Error> {
    let id: RedriveId = id.parse()?;
    let redrive = operator.act_on_redrive(id, action).await?.ok_or_else(|| no_such_redrive(id))?;
    print(output, &redrive)
}

fn no_such_redrive(id: RedriveId) -> Error {
    Error::new(Exit::NotFound, format!("there is no redrive {id}: see `mailslot redrive list`"))
}

async fn find(operator: &Operator, id: RedriveId) -> Result<Redrive, Error> {
    let found = operator.redrives().await?.into_iter().find(|redrive| redrive.id == id);
    found.ok_or_else(|| no_such_redrive(id))
}

/// Follows a redrive to its end, or to a pause when nobody would end it here.
async fn watch(operator: &Operator, id: RedriveId, drive: bool, global: &Global) -> Result<(), Error> {
    let mut redrive = find(operator, id).await?;
    let bar = progress::bar(global, Some(redrive.total), "messages requeued");
    if !drive {
        bar.set_message("(a worker drives it, or --drive does)");
    }
    let mut look = tokio::time::interval(LOOK_EVERY);
    while redrive.state == RedriveState::Running {
        look.tick().await;
        if drive {
            operator.step_redrives().await?;
        }
        redrive = find(operator, id).await?;
        bar.set_position(redrive.requeued);
    }
    bar.finish_and_clear();
    print(Output::new(global), &redrive)
}

fn print(output: Output, redrive: &Redrive) -> Result<(), Error> {
    let Redrive { id, state, requeued, total, .. } = redrive;
    let messages = counted(*total, "message");
    output.result(format!("redrive {id} is {state}: {requeued} of {messages} requeued"), redrive)
}

fn list(output: Output, redrives: &[Redrive]) -> Result<(), Error> {
    if output.json {
        return output.document(&redrives);
    }
    let mut table = Table::new(["REDRIVE", "STATE", "REQUEUED", "OF", "PER SECOND", "BEGAN", "MOVED"]);
    for redrive in redrives {
        table.row(vec![
            redrive.id.into(),
            redrive.state.into(),
            Cell::number(redrive.requeued),
            Cell::number(redrive.total),
            Cell::number(redrive.spec.rate),
            time(redrive.created_at).into(),
            time(redrive.updated_at).into(),
        ]);
    }
    output.table(&table, "there are no redrives")
}
