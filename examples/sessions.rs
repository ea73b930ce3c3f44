//! Sessions: messages of one key run one at a time, in the order of acceptance. A dead letter at the head holds back
//! its own session and no other, until somebody decides.
//!
//! `cargo run -p mailslot --example sessions`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use mailslot::store::Filter;
use mailslot::{HandlerError, Inbox, MemoryStore, Message, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

type Say = Arc<dyn Fn(String) + Send + Sync>;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "order.step", version = 1)]
struct Step {
    order: String,
    what: String,
}

async fn perform(step: Step, State(say): State<Say>) -> Result<(), HandlerError> {
    if step.what == "take the money" && step.order == "order-1" {
        say(format!("{}: {} fails for good", step.order, step.what));
        return Err(HandlerError::permanent("the card is expired"));
    }
    say(format!("{}: {}", step.order, step.what));
    Ok(())
}

pub(crate) async fn run(say: Say) -> anyhow::Result<()> {
    let inbox = Inbox::builder(MemoryStore::new())
        .handler(perform)
        .state(say.clone())
        // Many handlers may run at once; within a session it is still one after the other.
        .concurrency(1)
        .build()?;
    for order in ["order-1", "order-2"] {
        for what in ["check the stock", "take the money", "send the parcel"] {
            let step = Step { order: order.into(), what: what.into() };
            inbox.accept(&step).session(order).await?;
        }
    }

    // Order 2 passes by; order 1 stops at its second step.
    let mut stats = inbox.watch();
    inbox
        .run(async { drop(stats.wait_for(|stats| stats.completed == 4 && stats.dead_lettered == 1).await) })
        .await?;
    let blocked = inbox.operator().sessions(true, 10).await?;
    for session in &blocked {
        say(format!("{} is blocked by a dead letter; {} step waits behind it", session.key, session.parked));
    }

    // An operator looks at it and decides: give this one up, and let the session go on. `requeue` would try it again.
    let heads = Filter::of_ids(blocked.iter().map(|session| session.head));
    let skipped = inbox.operator().skip(&heads).await?;
    say(format!("an operator skips {} message", skipped.changed));

    let mut stats = inbox.watch();
    inbox.run(async { drop(stats.wait_for(|stats| stats.completed == 5).await) }).await?;
    say(format!("blocked sessions: {}", inbox.operator().sessions(true, 10).await?.len()));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Arc::new(|line| println!("{line}"))).await
}
