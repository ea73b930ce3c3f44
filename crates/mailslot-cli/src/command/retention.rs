//! `mailslot retention`.

use crate::args::{Global, Keep, keep};
use crate::error::Error;
use crate::output::{Cell, Output, Table, counted, length, status_cell};
use crate::progress;
use crate::store::open_operator;
use clap::Subcommand;
use jiff::SignedDuration;
use mailslot::Status;
use mailslot::store::{Count, RetentionPolicy};
use serde::Serialize;
use std::time::Duration;

/// A worker applies its own policy while it runs; these are for stores without one, or for once.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what a policy keeps and how many messages have ended
    Show(PolicyArgs),
    /// Delete what ended longer ago than the policy keeps it
    Run(PolicyArgs),
}

/// For how long ended messages are kept, counted from their end: `7d`, or `never` (to delete).
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PolicyArgs {
    /// Keep completed messages, and their keys, for this long
    #[arg(long, value_name = "TIME", value_parser = keep, default_value = "7d")]
    completed: Keep,
    /// Keep skipped messages for this long
    #[arg(long, value_name = "TIME", value_parser = keep, default_value = "7d")]
    skipped: Keep,
    /// Keep cancelled messages for this long
    #[arg(long, value_name = "TIME", value_parser = keep, default_value = "7d")]
    cancelled: Keep,
    /// Keep dead letters for this long
    #[arg(long, value_name = "TIME", value_parser = keep, default_value = "never")]
    dead_lettered: Keep,
}

impl PolicyArgs {
    fn policy(&self) -> RetentionPolicy {
        RetentionPolicy {
            completed: self.completed.limit(),
            skipped: self.skipped.limit(),
            cancelled: self.cancelled.limit(),
            dead_lettered: self.dead_lettered.limit(),
        }
    }
}

#[derive(Serialize)]
struct KeptView {
    status: Status,
    /// Seconds; absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_s: Option<u64>,
    messages: u64,
}

#[derive(Serialize)]
struct DeletedView {
    deleted: u64,
}

/// Shows or applies the policy.
pub(crate) async fn run(command: Command, global: &Global) -> Result<(), Error> {
    let output = Output::new(global);
    let operator = open_operator(global).await?;
    match command {
        Command::Show(args) => show(output, &args.policy(), &operator.counts().await?),
        Command::Run(args) => {
            let bar = progress::bar(global, None, "messages deleted");
            let deleted = operator.retain(&args.policy(), |deleted| bar.set_position(deleted)).await?;
            bar.finish_and_clear();
            output.result(format!("deleted {}", counted(deleted, "message")), &DeletedView { deleted })
        }
    }
}

fn show(output: Output, policy: &RetentionPolicy, counts: &[Count]) -> Result<(), Error> {
    let ended = Status::ALL.iter().copied().filter(|status| status.is_terminal());
    let view = |status| KeptView {
        status,
        keep_s: policy.keep(status).map(|keep| keep.as_secs()),
        messages: counts.iter().filter(|count| count.status == status).map(|count| count.messages).sum(),
    };
    let kept: Vec<_> = ended.map(view).collect();
    if output.json {
        return output.document(&kept);
    }
    let mut table = Table::new(["STATE", "KEPT FOR", "MESSAGES"]);
    for KeptView { status, messages, .. } in &kept {
        let keep = policy.keep(*status).map_or_else(|| "ever".to_owned(), text);
        table.row(vec![status_cell(*status), keep.into(), Cell::number(messages)]);
    }
    output.table(&table, "")
}

fn text(keep: Duration) -> String {
    SignedDuration::try_from(keep).map_or_else(|_| "ever".to_owned(), length)
}
