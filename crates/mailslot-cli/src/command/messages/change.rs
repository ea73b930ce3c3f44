//! `mailslot messages requeue`, `skip`, `cancel` and `purge`.

use crate::args::Global;
use crate::error::Error;
use crate::exit::Exit;
use crate::filter::{FilterArgs, no_such_message};
use crate::output::{Output, counted};
use crate::progress;
use crate::store::open_operator;
use mailslot::limits::PAGE_MAX;
use mailslot::store::{Change, Filter, MessageRecord, PageRequest};
use mailslot::{MessageId, Operator, Status};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Messages are named by id or selected by flags; `--all` selects every one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// These messages
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Every message to which it applies
    #[arg(long)]
    all: bool,
    /// Only count them
    #[arg(long)]
    dry_run: bool,
}

/// As the others, and it asks before it deletes.
#[derive(Debug, clap::Args)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    args: Args,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct ChangedView {
    change: &'static str,
    dry_run: bool,
    /// How many ids were named, each counted once.
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<u64>,
    changed: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_found: Vec<MessageId>,
}

/// Changes what is selected.
pub(crate) async fn run(change: Change, args: Args, global: &Global) -> Result<(), Error> {
    let selection = Selection::of(change, &args)?;
    selection.apply(&open_operator(global).await?, args.dry_run, global).await
}

/// Deletes what is selected, once the user agrees.
pub(crate) async fn purge(args: PurgeArgs, global: &Global) -> Result<(), Error> {
    let PurgeArgs { args, yes } = args;
    let selection = Selection::of(Change::Purge, &args)?;
    let operator = open_operator(global).await?;
    if !args.dry_run && !yes {
        confirm(selection.count(&operator).await?)?;
    }
    selection.apply(&operator, args.dry_run, global).await
}

fn confirm(count: u64) -> Result<(), Error> {
    let messages = counted(count, "message");
    let refused = || Error::new(Exit::Usage, format!("{messages} would be deleted for good: add --yes"));
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(refused());
    }
    let mut answer = String::new();
    // An answer that cannot be read is no yes.
    let _ = write!(std::io::stderr(), "delete {messages} for good? [y/N] ");
    let _ = std::io::stdin().lock().read_line(&mut answer);
    if answer.trim().eq_ignore_ascii_case("y") { Ok(()) } else { Err(refused()) }
}

/// What is changed, and how.
struct Selection {
    change: Change,
    filter: Filter,
}

impl Selection {
    fn of(change: Change, args: &Args) -> Result<Self, Error> {
        let filter = args.filter.filter(&args.ids)?;
        let name = name_of(change);
        match (filter.is_unrestricted(), args.all) {
            (true, false) => {
                let text = format!("nothing says what to {name}: name ids, narrow by flags, or add --all");
                Err(Error::new(Exit::Usage, text))
            }
            (false, true) => {
                Err(Error::new(Exit::Usage, "--all stands beside ids or filters: leave one of them out"))
            }
            _ => Ok(Self { change, filter }),
        }
    }

    async fn apply(self, operator: &Operator, dry_run: bool, global: &Global) -> Result<(), Error> {
        let output = Output::new(global);
        let change = name_of(self.change);
        // Before the change: a purge leaves nothing to look for.
        let not_found = self.missing(operator).await?;
        let requested = self.filter.ids.as_ref().map(|ids| ids.iter().collect::<BTreeSet<_>>().len() as u64);
        let changed = if dry_run {
            self.count(operator).await?
        } else {
            let bar = progress::bar(global, None, "messages");
            let changes = operator.change(self.change, &self.filter, |changed| bar.set_position(changed));
            let changes = changes.await?;
            bar.finish_and_clear();
            changes.changed
        };
        let of = requested.map_or_else(String::new, |requested| format!(" of {requested}"));
        let would = if dry_run { "would " } else { "" };
        let text =
            format!("{would}{change}: {changed}{of} {}", if changed == 1 { "message" } else { "messages" });
        let missing = not_found.first().copied();
        let view = ChangedView { change, dry_run, requested, changed, not_found };
        output.result(text, &view)?;
        if let Some(id) = missing {
            return Err(no_such_message(id));
        }
        if requested.is_some_and(|requested| changed < requested) {
            let states: Vec<_> = self.change.statuses().map(Status::as_str).collect();
            output.note(format!("the rest are not in a state to {change}, which is: {}", states.join(", ")));
        }
        Ok(())
    }

    /// Ids that were named and do not exist.
    async fn missing(&self, operator: &Operator) -> Result<Vec<MessageId>, Error> {
        let Some(ids) = &self.filter.ids else { return Ok(Vec::new()) };
        let mut missing: BTreeSet<_> = ids.iter().copied().collect();
        each(operator, &Filter::of_ids(ids.iter().copied()), |record| {
            missing.remove(&record.envelope.id);
        })
        .await?;
        Ok(missing.into_iter().collect())
    }

    /// How many messages the change would apply to.
    async fn count(&self, operator: &Operator) -> Result<u64, Error> {
        let mut count = 0;
        each(operator, &self.filter, |record| {
            count += u64::from(self.change.applies_to(record.status) && !record.cancel_requested);
        })
        .await?;
        Ok(count)
    }
}

async fn each(
    operator: &Operator,
    filter: &Filter,
    mut see: impl FnMut(&MessageRecord),
) -> Result<(), Error> {
    let mut page = PageRequest { size: PAGE_MAX, ..PageRequest::default() };
    loop {
        let found = operator.query(filter, &page).await?;
        found.items.iter().for_each(&mut see);
        page.after = found.next;
        if page.after.is_none() {
            return Ok(());
        }
    }
}

fn name_of(change: Change) -> &'static str {
    match change {
        Change::Requeue => "requeue",
        Change::Skip => "skip",
        Change::Cancel => "cancel",
        Change::Purge => "purge",
    }
}
