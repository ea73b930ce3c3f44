//! The story of the demo, in the order in which it is told.

use super::accept::{self, Accepted};
use super::audit::Audit;
use super::effects::Ledger;
use super::folder::Folder;
use super::handlers::{ATTEMPTS_BROKEN, BROKEN, DEADLY, Handlers, RETRY, SHAKY};
use super::input;
use super::redrive::{self, RATE};
use super::screen::Screen;
use super::summary::{self, Summary};
use super::supervise::{Supervisor, Tally};
use anyhow::{Context, bail};
use mailslot::store::{Filter, PageRequest};
use mailslot::{AcceptOutcome, AnyStore, Inbox, Operator, Reason, Receipt, Status};
use std::time::Instant;

/// One demo.
#[derive(Debug)]
pub(super) struct Demo {
    folder: Folder,
    inbox: Inbox<AnyStore>,
    operator: Operator,
    supervisor: Supervisor,
    screen: Screen,
    start: Instant,
}

impl Demo {
    pub(super) async fn open(folder: Folder, screen: Screen) -> anyhow::Result<Self> {
        let store = mailslot::open(&folder.store()).await?;
        // This process only accepts; the worker is another one.
        let inbox = Inbox::builder(store).accept_any_contract().build()?;
        let operator = inbox.operator();
        let supervisor = Supervisor::new(folder.clone(), operator.clone());
        Ok(Self { folder, inbox, operator, supervisor, screen, start: Instant::now() })
    }

    /// The store, as `--store` takes it.
    pub(super) fn store(&self) -> String {
        self.folder.store()
    }

    /// Stops the worker, if one runs.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.screen.end();
        self.supervisor.stop().await
    }

    /// Tells the whole story.
    pub(super) async fn tell(&mut self) -> anyhow::Result<()> {
        self.introduce();
        let webhooks = input::webhooks()?;
        let accepted = self.accept(&webhooks).await?;
        let (duplicates, conflict) = self.accept_again(&webhooks, &accepted.receipts).await?;
        self.announce_faults();
        self.work().await?;
        let crashes = self.supervisor.deaths();
        let worked = self.audit(&accepted.receipts).await?;
        self.screen.title("4. Count everything");
        summary::show(&self.screen, accepted.receipts.len(), duplicates, crashes, &worked);
        let redriven = self.redrive().await?;
        let repaired = self.audit(&accepted.receipts).await?;
        self.propose(&repaired).await?;
        self.report(&Summary {
            store: self.folder.store(),
            accepted: accepted.receipts.len(),
            accepted_per_second: accepted.per_second(),
            duplicates,
            conflicts: 1,
            conflict,
            crashes,
            worked,
            redriven,
            repaired,
            seconds: self.start.elapsed().as_secs_f64(),
        })
    }

    fn introduce(&self) {
        let screen = &self.screen;
        screen.line(
            "An inbox for programs: what Mailslot accepts is on disk, and is handled until that works or",
        );
        screen.line(
            "a person decides. This demo accepts real webhooks, breaks its worker on purpose, and counts",
        );
        screen.line("whether anything was lost.");
        screen.line(format!("Files: {}", self.folder.path().display()));
    }

    async fn accept(&mut self, webhooks: &[input::Webhook]) -> anyhow::Result<Accepted> {
        self.screen.title("1. Accept");
        let accepted = accept::all(&self.inbox, webhooks, &mut self.screen).await?;
        self.screen.say(format!(
            "{} webhooks of GitHub, delivered at the same time: accepted in {:.2} s ({:.0} a second).",
            accepted.receipts.len(),
            accepted.took.as_secs_f64(),
            accepted.per_second()
        ));
        self.screen.say("Each sender has a receipt now: its message is on disk, and survives any crash.");
        Ok(accepted)
    }

    async fn accept_again(
        &mut self,
        webhooks: &[input::Webhook],
        first: &[Receipt],
    ) -> anyhow::Result<(usize, String)> {
        self.screen.title("2. Accept again: senders repeat themselves");
        let again = accept::again(&self.inbox, webhooks, first).await?;
        let expected = accept::REPEATED.min(webhooks.len());
        if again.len() != expected {
            bail!("only {} of {expected} repeated deliveries were recognised", again.len());
        }
        self.screen.say(format!(
            "{expected} of them delivered a second time, with the same idempotency key: {} already accepted.",
            again.len()
        ));
        self.screen.say(
            "The sender gets the first receipt again, and where its message stands; nothing is stored twice:",
        );
        if let Some(Receipt { id, accepted_at, outcome: AcceptOutcome::AlreadyAccepted { status }, .. }) =
            again.first()
        {
            self.screen.say(format!("  message {id}, accepted at {accepted_at:.0}, now {status}"));
        }
        let webhook = webhooks.first().context("the demo has no input")?;
        let refusal = accept::forged(&self.inbox, webhook).await?.to_string();
        self.screen.say(
            "1 delivered with a known key and other content: refused, since it is a mistake of its sender:",
        );
        self.screen.say(format!("  {refusal}"));
        Ok((again.len(), refusal))
    }

    fn announce_faults(&self) {
        let screen = &self.screen;
        screen.title("3. Work, in a process of its own, with three faults");
        let wait = RETRY.as_millis();
        screen.say(format!("{} fail at first: tried again after {wait} ms.", SHAKY.join(" and ")));
        screen.say(format!(
            "{BROKEN} always fails: given up after {ATTEMPTS_BROKEN} attempts, as a dead letter."
        ));
        screen.say(format!("{DEADLY} kills the whole process with SIGKILL, as a bug or the system would."));
    }

    async fn work(&mut self) -> anyhow::Result<()> {
        let before = self.supervisor.tally().await?;
        self.screen.begin(before.open, "ended");
        let done = |tally: Tally, screen: &mut Screen| {
            let note = format!("({} handled, {} dead letters)", tally.completed, tally.dead);
            screen.progress(before.open.saturating_sub(tally.open), note);
            tally.open == 0
        };
        self.supervisor.work(Handlers::Faulty, &mut self.screen, done).await?;
        self.screen.end();
        let after = self.supervisor.tally().await?;
        self.screen
            .say(format!("Nothing is left to do: {} handled, {} dead letters.", after.completed, after.dead));
        Ok(())
    }

    async fn audit(&self, receipts: &[Receipt]) -> anyhow::Result<Audit> {
        Audit::of(&self.operator, receipts, &Ledger::read(&self.folder.effects())?).await
    }

    async fn redrive(&mut self) -> anyhow::Result<u64> {
        self.screen.title("5. Repair and redrive");
        self.screen.say(format!("{BROKEN} is repaired: the service that it calls answers again."));
        self.screen.say(format!("Its dead letters are tried again, {RATE} a second."));
        let reason = Reason::AttemptsExhausted;
        let redriven =
            redrive::redrive(&self.operator, &mut self.supervisor, reason, &mut self.screen).await?;
        self.screen.say(format!("{redriven} dead letters redriven, {redriven} handled."));
        Ok(redriven)
    }

    /// What the reader can do next, to be copied as it stands.
    async fn propose(&self, audit: &Audit) -> anyhow::Result<()> {
        let dead: u64 = audit.dead_letters.values().sum();
        let filter = Filter { statuses: Some(vec![Status::DeadLettered]), ..Filter::default() };
        let page = self.operator.query(&filter, &PageRequest::default()).await?;
        let program = std::env::args().next().unwrap_or_else(|| "mailslot".into());
        let program = format!("{program} --store {}", self.store());
        let screen = &self.screen;
        screen.title(format!(
            "{dead} dead letter is left, the one that kills its worker. Look at it, then try it again:"
        ));
        screen.say(format!("{program} messages list --status dead_lettered"));
        if let Some(record) = page.items.first() {
            screen.say(format!("{program} messages show {}", record.envelope.id));
        }
        screen.say(format!("{program} redrive start --reason crashed --rate 1 --drive"));
        screen.say(format!(
            "{program} work --route 'github.*=exec:cat' --drain   # any program can be a handler"
        ));
        screen.say(format!("{program} counts"));
        screen.say(format!("{program} doctor"));
        Ok(())
    }

    /// Ends the demo: a broken promise is a failure of the program.
    fn report(&self, summary: &Summary) -> anyhow::Result<()> {
        if self.screen.is_quiet() {
            use std::io::Write as _;
            writeln!(std::io::stdout(), "{}", serde_json::to_string(summary)?)?;
        }
        self.screen.line(format!("\nDone in {:.1} s.", summary.seconds));
        if !(summary.worked.is_clean() && summary.repaired.is_clean()) {
            bail!("the demo found a broken promise: please report the table above, with the folder");
        }
        Ok(())
    }
}
