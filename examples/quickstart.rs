//! The shortest way through Mailslot: accept a message with a key, handle it, retry it.
//!
//! `cargo run -p mailslot --example quickstart`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use mailslot::{Attempt, HandlerError, Inbox, MemoryStore, Message, Retry, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Where the example tells what happens: the terminal, or a test.
type Say = Arc<dyn Fn(String) + Send + Sync>;

/// A message is a plain type with a contract: the name and version under which it is stored.
#[derive(Serialize, Deserialize, Message)]
#[message(name = "mail.welcome", version = 1)]
struct Welcome {
    to: String,
}

/// A handler is a plain async function: the message first, then whatever it needs.
async fn send_mail(mail: Welcome, attempt: Attempt, State(say): State<Say>) -> Result<(), HandlerError> {
    if attempt.number == 1 {
        say("attempt 1: the mail server is busy".into());
        return Err("the mail server is busy".into());
    }
    say(format!("attempt {}: mail sent to {}", attempt.number, mail.to));
    Ok(())
}

pub(crate) async fn run(say: Say) -> anyhow::Result<()> {
    // In memory, so it is forgotten with the process. `SqliteStore::connect("inbox.db")` keeps it.
    let inbox = Inbox::builder(MemoryStore::new())
        .handler(send_mail)
        .state(say.clone())
        .retry(Retry::exponential(Duration::from_millis(10)).max_attempts(5))
        .build()?;

    // The receipt means that the message is stored. The key makes a repeated accept recognisable.
    let mail = Welcome { to: "ada@example.org".into() };
    let first = inbox.accept(&mail).idempotency_key("welcome:ada").await?;
    let again = inbox.accept(&mail).idempotency_key("welcome:ada").await?;
    say(format!("stored once: {}", first.is_new() && !again.is_new() && first.id == again.id));

    // Work until told to stop: here when the message is handled, in a service when the service ends.
    let mut stats = inbox.watch();
    let handled = async { drop(stats.wait_for(|stats| stats.completed == 1).await) };
    inbox.run(handled).await?;
    say(format!("handled {}, after {} retry", inbox.stats().completed, inbox.stats().retried));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Arc::new(|line| println!("{line}"))).await
}
