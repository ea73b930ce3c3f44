//! Ours: an inbox as a program builds it.

use crate::contender::{Contender, Worker};
use crate::counted::Counted;
use crate::latencies::Latencies;
use crate::message::Work;
use crate::probe::Probe;
use async_trait::async_trait;
use mailslot_core::{HandlerError, NewMessage, State};
use mailslot_engine::{AnyStore, Inbox};
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
}

/// An inbox with one handler.
#[derive(Debug)]
pub struct OurInbox {
    inbox: Inbox<Counted>,
    probe: Probe,
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
            .concurrency(settings.concurrency)
            .build()?;
        Ok(Self { inbox, probe })
    }

    fn prepare(&self) -> anyhow::Result<NewMessage> {
        let key = Uuid::new_v4().to_string();
        Ok(self.inbox.accept(&Work::now()).idempotency_key(key).prepare()?)
    }
}

#[async_trait]
impl Contender for OurInbox {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        let accept = self.inbox.accept(&Work::now());
        let accept = if keyed { accept.idempotency_key(Uuid::new_v4().to_string()) } else { accept };
        accept.await?;
        Ok(())
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
