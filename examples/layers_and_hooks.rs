//! What runs around every handler: tower layers, which see the handler as a service, and hooks, which see each step.
//!
//! `cargo run -p mailslot --example layers_and_hooks`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use async_trait::async_trait;
use mailslot::{
    BoxedHandler, Context, Delivery, HandlerError, Hook, Inbox, MemoryStore, Message, Retry, State, Verdict,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt as _;
use tower::layer::layer_fn;

type Say = Arc<dyn Fn(String) + Send + Sync>;

#[derive(Serialize, Deserialize, Message)]
#[message(name = "report.build", version = 1)]
struct BuildReport {
    month: u32,
}

async fn build(report: BuildReport, context: Context, State(say): State<Say>) -> Result<(), HandlerError> {
    if context.attempt().number == 1 {
        return Err("the figures are not there yet".into());
    }
    say(format!("  the handler builds the report of month {}", report.month));
    Ok(())
}

/// A hook follows every message, and may veto.
struct Audit {
    say: Say,
}

#[async_trait]
impl Hook for Audit {
    async fn before_dispatch(&self, context: &Context) -> Result<(), HandlerError> {
        (self.say)(format!("hook: attempt {} begins", context.attempt().number));
        Ok(())
    }

    /// A message that is not wanted is skipped, and its handler never sees it.
    async fn should_dispatch(&self, context: &Context) -> Result<bool, HandlerError> {
        Ok(context.envelope().tenant.as_ref().is_none_or(|tenant| tenant.as_str() != "closed"))
    }

    async fn after_dispatch(&self, _: &Context, verdict: &Verdict) -> Result<(), HandlerError> {
        (self.say)(format!("hook: it ended with {:?}", verdict.kind()));
        Ok(())
    }
}

pub(crate) async fn run(say: Say) -> anyhow::Result<()> {
    // Any tower layer whose service takes a `Delivery` and answers with a `Verdict`.
    let told = say.clone();
    let announce = layer_fn(move |inner: BoxedHandler| {
        let say = told.clone();
        inner.map_request(move |delivery: Delivery| {
            say(format!(" layer: {} bytes pass", delivery.payload().bytes().len()));
            delivery
        })
    });
    let inbox = Inbox::builder(MemoryStore::new())
        .handler(build)
        .layer(announce)
        .hook(Audit { say: say.clone() })
        .state(say.clone())
        .retry(Retry::fixed(Duration::from_millis(10)))
        .concurrency(1)
        .build()?;
    inbox.accept(&BuildReport { month: 7 }).await?;
    let mut stats = inbox.watch();
    inbox.run(async { drop(stats.wait_for(|stats| stats.completed == 1).await) }).await?;

    inbox.accept(&BuildReport { month: 8 }).tenant("closed").await?;
    let mut stats = inbox.watch();
    inbox.run(async { drop(stats.wait_for(|stats| stats.skipped == 1).await) }).await?;
    say(format!("handled {}, skipped {}", inbox.stats().completed, inbox.stats().skipped));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Arc::new(|line| println!("{line}"))).await
}
