//! `mailslot handoff`.

use crate::args::Global;
use crate::error::Error;
use crate::exit::Exit;
use crate::filter::message_id;
use crate::output::Output;
use crate::store::open_operator;
use clap::Subcommand;
use mailslot::store::{HandoffResult, MessageRecord};
use mailslot::{ErrorText, HandoffSettled, MessageId, Operator};
use serde::Serialize;
use std::time::Duration;

/// For how long an early settlement is kept: longer than a handler runs, with all its retries.
const KEEP_FOR: Duration = Duration::from_secs(24 * 3600);

/// A suspended message waits until its work elsewhere is settled here.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The work succeeded: complete the message
    Complete {
        /// The message
        id: String,
        /// Keep it for a day if the message is not suspended yet
        #[arg(long)]
        early: bool,
    },
    /// The work failed: dead-letter the message
    Fail {
        /// The message
        id: String,
        /// What went wrong
        #[arg(long, value_name = "TEXT", default_value = "the work elsewhere failed")]
        error: String,
        /// Keep it for a day if the message is not suspended yet
        #[arg(long)]
        early: bool,
    },
    /// Messages whose work was expected to be done by now
    Overdue {
        /// At most so many
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
}

#[derive(Serialize)]
struct SettledView {
    id: MessageId,
    status: &'static str,
}

#[derive(Serialize)]
struct OverdueView {
    id: MessageId,
    contract: String,
    reason: String,
    external_job_id: Option<String>,
    expected_by: Option<String>,
}

/// Settles the message, or lists those that nobody settled.
pub(crate) async fn run(command: Command, global: &Global) -> Result<(), Error> {
    let operator = open_operator(global).await?;
    match command {
        Command::Complete { id, early } => {
            settle(&operator, global, message_id(&id)?, HandoffResult::Completed, early).await
        }
        Command::Fail { id, error, early } => {
            let failed = HandoffResult::Failed(ErrorText::new(error));
            settle(&operator, global, message_id(&id)?, failed, early).await
        }
        Command::Overdue { limit } => overdue(&operator, global, limit).await,
    }
}

async fn settle(
    operator: &Operator,
    global: &Global,
    id: MessageId,
    result: HandoffResult,
    early: bool,
) -> Result<(), Error> {
    let ended = match &result {
        HandoffResult::Completed => "completed",
        HandoffResult::Failed(_) => "dead_lettered",
    };
    let status = if early {
        match operator.settle_handoff_early(id, result, KEEP_FOR).await? {
            HandoffSettled::Applied => Some(ended),
            HandoffSettled::Kept => Some("kept"),
        }
    } else {
        let settled = match result {
            HandoffResult::Completed => operator.complete_handoff(id).await?,
            HandoffResult::Failed(error) => operator.fail_handoff(id, error.as_str()).await?,
        };
        settled.then_some(ended)
    };
    let Some(status) = status else {
        let text = format!(
            "no suspended message has the id {id}: see `mailslot messages list --status suspended`, or keep it with --early"
        );
        return Err(Error::new(Exit::NotFound, text));
    };
    Output::new(global).result(format!("{id} is {status}"), &SettledView { id, status })
}

async fn overdue(operator: &Operator, global: &Global, limit: usize) -> Result<(), Error> {
    let view = |record: MessageRecord| {
        let handoff = record.handoff?;
        Some(OverdueView {
            id: record.envelope.id,
            contract: record.envelope.contract.to_string(),
            reason: handoff.reason,
            external_job_id: handoff.external_job_id,
            expected_by: handoff.expected_by.map(|at| at.to_string()),
        })
    };
    let overdue: Vec<_> = operator.overdue_handoffs(limit).await?.into_iter().filter_map(view).collect();
    let line = |one: &OverdueView| {
        let (job, by) = (one.external_job_id.as_deref(), one.expected_by.as_deref());
        let (job, by) = (job.unwrap_or("-"), by.unwrap_or("-"));
        format!("{}  {}  expected by {by}  job {job}  {}", one.id, one.contract, one.reason)
    };
    let text = match &overdue[..] {
        [] => "no handoff is overdue".to_owned(),
        overdue => overdue.iter().map(line).collect::<Vec<_>>().join("\n"),
    };
    Output::new(global).result(text, &overdue)
}
