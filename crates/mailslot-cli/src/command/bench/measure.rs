//! The measurements, with the loads that the project's own benchmark uses.

use super::{Args, What};
use crate::error::Error;
use clap::ValueEnum as _;
use mailslot_load::{Load, OurInbox, Sample, Settings, Span, accept, both, drain, fill, latency};
use std::sync::Arc;
use std::time::Duration;

/// Accepts a second on an idle inbox.
const IDLE: f64 = 20.0;

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    kind: Kind,
    span: Span,
    settings: Settings,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Accept { callers: usize },
    Execute { backlog: usize },
    Both { callers: usize },
    Latency,
}

/// What was asked for, in order.
pub(super) fn plans(args: &Args) -> Vec<Plan> {
    let asked = if args.what.is_empty() { What::value_variants() } else { &args.what };
    let callers = usize::from(args.callers);
    let of = |what: &What| match what {
        What::Accept if callers == 1 => vec![Kind::Accept { callers }],
        What::Accept => vec![Kind::Accept { callers: 1 }, Kind::Accept { callers }],
        What::Execute => vec![Kind::Execute { backlog: args.backlog as usize }],
        What::Both => vec![Kind::Both { callers }],
        What::Latency => vec![Kind::Latency],
    };
    let (concurrency, handler) = (usize::from(args.concurrency), args.handler);
    let settings = Settings { concurrency, handler, max_age: None };
    let span = Span { warm_up: (args.time / 4).min(Duration::from_secs(1)), measured: args.time };
    asked.iter().flat_map(of).map(|kind| Plan { kind, span, settings }).collect()
}

impl Plan {
    pub(super) fn name(&self) -> String {
        let callers = |count| if count == 1 { "1 caller".to_owned() } else { format!("{count} callers") };
        let handlers = self.settings.concurrency;
        match self.kind {
            Kind::Accept { callers: count } => format!("accept, {}", callers(count)),
            Kind::Execute { backlog } => format!("execute, {backlog} waiting, {handlers} handlers"),
            Kind::Both { callers: count } => format!("both at once, {}, {handlers} handlers", callers(count)),
            Kind::Latency => format!("idle, {IDLE} a second"),
        }
    }

    /// An inbox on the store of this URL.
    pub(super) async fn open(&self, url: &str) -> Result<Arc<OurInbox>, Error> {
        Ok(Arc::new(OurInbox::build(mailslot::open(url).await?, self.settings)?))
    }

    /// Measures an inbox without messages.
    pub(super) async fn measure(&self, inbox: Arc<OurInbox>) -> Result<Sample, Error> {
        let load = |callers| Load { callers, batch: 1, keyed: true, span: self.span };
        let sample = match self.kind {
            Kind::Accept { callers } => accept(inbox, load(callers), None).await,
            Kind::Both { callers } => both(inbox, load(callers), None).await,
            Kind::Latency => latency(inbox, IDLE, self.span, None).await,
            Kind::Execute { backlog } => {
                fill(inbox.clone(), backlog).await?;
                drain(inbox, backlog as u64, self.span, None).await
            }
        };
        Ok(sample?)
    }
}
