//! `mailslot handoff`.

use crate::args::Global;
use crate::error::Error;
use crate::exit::Exit;
use crate::filter::message_id;
use crate::output::Output;
use crate::store::open_operator;
use clap::Subcommand;
use mailslot::MessageId;
use serde::Serialize;

/// A suspended message waits until its work elsewhere is settled here.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The work succeeded: complete the message
    Complete {
        /// The message
        id: String,
    },
    /// The work failed: dead-letter the message
    Fail {
        /// The message
        id: String,
        /// What went wrong
        #[arg(long, value_name = "TEXT", default_value = "the work elsewhere failed")]
        error: String,
    },
}

#[derive(Serialize)]
struct SettledView {
    id: MessageId,
    status: &'static str,
}

/// Settles the message.
pub(crate) async fn run(command: Command, global: &Global) -> Result<(), Error> {
    let operator = open_operator(global).await?;
    let (id, settled, status) = match command {
        Command::Complete { id } => {
            let id = message_id(&id)?;
            (id, operator.complete_handoff(id).await?, "completed")
        }
        Command::Fail { id, error } => {
            let id = message_id(&id)?;
            (id, operator.fail_handoff(id, error).await?, "dead_lettered")
        }
    };
    if !settled {
        let text =
            format!("no suspended message has the id {id}: see `mailslot messages list --status suspended`");
        return Err(Error::new(Exit::NotFound, text));
    }
    Output::new(global).result(format!("{id} is {status}"), &SettledView { id, status })
}
