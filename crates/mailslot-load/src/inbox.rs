//! Ours: an inbox as a program builds it.

use crate::contender::{Contender, Worker};
use crate::counted::Counted;
use crate::latencies::Latencies;
use crate::message::Work;
use crate::probe::Probe;
use async_trait::async_trait;
use mailslot_core::{HandlerError, NewMessage, State};
use mailslot_engine::{AcceptError, AnyStore, BackPressure, Inbox};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// How it works.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Handlers at once.
    pub concurrency: usize,
    /// How long a handler waits; not at all by default.
    pub handler: Option<Duration>,
    /// Accepts wait while a message has been due for longer than this; by default they do not.
    pub max_age: Option<Duration>,
}

/// An inbox with one handler. An accept that it refuses is repeated when it said.
#[derive(Debug)]
pub struct OurInbox {
    inbox: Inbox<Counted>,
    probe: Probe,
    refused: AtomicU64,
}

async fn handle(work: Work, State(probe): State<Probe>) -> Result<(), HandlerError> {
    probe.started(work.sent_ns);
    if let Some(time) = probe.handler {
        tokio::time::sleep(time).await;
    }
    Ok(())
}

impl OurInbox {
    /// Builds an inbox on a store.
    pub fn build(store: AnyStore, settings: Settings) -> anyhow::Result<Self> {
        let probe = Probe::new(settings.handler);
        let inbox = Inbox::builder(Counted::new(store))
            .handler(handle)
            .state(probe.clone())
            .concurrency(settings.concurrency);
        let inbox = match settings.max_age {
            Some(max_age) => inbox.back_pressure(BackPressure::max_age(max_age)),
            None => inbox,
        };
        Ok(Self { inbox: inbox.build()?, probe, refused: AtomicU64::new(0) })
    }

    fn prepare(&self) -> anyhow::Result<NewMessage> {
        let key = Uuid::new_v4().to_string();
        Ok(self.inbox.accept(&Work::now()).idempotency_key(key).prepare()?)
    }
}

#[async_trait]
impl Contender for OurInbox {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        loop {
            // Made anew each time: a message that was refused was not sent.
            let accept = self.inbox.accept(&Work::now());
            let accept = if keyed { accept.idempotency_key(Uuid::new_v4().to_string()) } else { accept };
            match accept.await {
                Err(AcceptError::Overloaded { retry_after, .. }) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(retry_after).await;
                }
                accepted => return Ok(accepted.map(drop)?),
            }
        }
    }

    async fn accept_batch(&self, messages: usize) -> anyhow::Result<()> {
        let batch: Vec<_> = (0..messages).map(|_| self.prepare()).collect::<Result<_, _>>()?;
        self.inbox.accept_batch(batch).await?;
        Ok(())
    }

    fn commits(&self) -> u64 {
        self.inbox.store().commits()
    }

    fn completed(&self) -> u64 {
        self.inbox.stats().completed
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Worker for OurInbox {
    async fn run(&self, stop: oneshot::Receiver<()>) -> anyhow::Result<()> {
        let stopped = async {
            // A dropped sender means stop as well.
            let _ = stop.await;
        };
        Ok(self.inbox.run(stopped).await?)
    }

    fn record(&self, recording: bool) {
        self.probe.record(recording);
    }

    fn starts(&self) -> Latencies {
        self.probe.take()
    }
}
