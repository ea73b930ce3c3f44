//! Ours: an inbox as a program builds it.

use super::{Contender, Counted, Probe, Setup, Worker, open_store};
use crate::message::Work;
use async_trait::async_trait;
use mailslot::{HandlerError, Inbox, NewMessage, State};
use tokio::sync::oneshot;
use uuid::Uuid;

/// An inbox with one handler.
pub(super) struct OurInbox {
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
    pub(super) async fn open(setup: &Setup) -> anyhow::Result<Self> {
        let store = Counted::new(open_store(setup.durability, &setup.path).await?);
        let probe = Probe::new(setup.handler);
        let inbox = Inbox::builder(store)
            .handler(handle)
            .state(probe.clone())
            .concurrency(setup.concurrency)
            .build()?;
        Ok(Self { inbox, probe })
    }

    fn prepare(&self) -> anyhow::Result<NewMessage> {
        let key = Uuid::new_v4().to_string();
        Ok(self.inbox.accept(&Work::new()).idempotency_key(key).prepare()?)
    }
}

#[async_trait]
impl Contender for OurInbox {
    async fn accept(&self, keyed: bool) -> anyhow::Result<()> {
        let accept = self.inbox.accept(&Work::new());
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

    fn completed(&self) -> u64 {
        self.inbox.stats().completed
    }

    fn probe(&self) -> &Probe {
        &self.probe
    }
}
