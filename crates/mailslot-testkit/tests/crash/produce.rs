//! Accepting the requests of a script: each again and again until it is accepted.

use super::backend::{Backend, BoxError, CrashInbox, finish};
use super::journal::{self, Journal};
use super::worker::Effects;
use super::workload::{How, InTransaction, Kind, Request, Step};
use mailslot_core::{NewMessage, Receipt};
use mailslot_engine::AcceptError;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// How many accept at a time, so that some share an append and kills fall between appends too.
const AT_ONCE: usize = 8;

/// Between two tries while the store is away.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// A producer that knows where its receipts go.
#[derive(Clone)]
pub(crate) struct Producer<B: Backend> {
    pub(crate) backend: B,
    pub(crate) inbox: CrashInbox<B>,
    pub(crate) effects: Effects,
    pub(crate) receipts: Journal,
}

impl<B: Backend> Producer<B> {
    pub(crate) fn new(backend: &B, inbox: &CrashInbox<B>, effects: &Effects) -> Self {
        let receipts = Journal::open(backend.dir(), journal::RECEIPTS);
        Self { backend: backend.clone(), inbox: inbox.clone(), effects: effects.clone(), receipts }
    }

    /// Accepts all requests, many at once. Those without a key that were answered before are left out; those with one
    /// are repeated, which must change nothing.
    pub(crate) async fn accept_all(&self, requests: impl Iterator<Item = Request>) -> Result<(), BoxError> {
        let known = self.known();
        let mut accepts = JoinSet::new();
        for request in requests.filter(|request| request.has_key || !known.contains(&request.name)) {
            if accepts.len() >= AT_ONCE {
                accepts.join_next().await.expect("a task is there")??;
            }
            let producer = self.clone();
            accepts.spawn(async move { producer.until_accepted(&request).await });
        }
        while let Some(accepted) = accepts.join_next().await {
            accepted??;
        }
        Ok(())
    }

    /// Accepts one request after the other at a steady pace; those that were answered before are left out.
    pub(crate) async fn accept_slowly(
        &self,
        requests: impl Iterator<Item = Request>,
        pace: Duration,
    ) -> Result<(), BoxError> {
        let known = self.known();
        let mut tick = tokio::time::interval(pace);
        for request in requests.filter(|request| !known.contains(&request.name)) {
            tick.tick().await;
            self.until_accepted(&request).await?;
        }
        Ok(())
    }

    /// The requests that were answered before.
    fn known(&self) -> BTreeSet<String> {
        let receipts = journal::read(self.backend.dir(), journal::RECEIPTS);
        receipts.into_iter().map(|words| words[0].clone()).collect()
    }

    async fn until_accepted(&self, request: &Request) -> Result<(), AcceptError> {
        let mut tick = tokio::time::interval(TRY_AGAIN);
        loop {
            tick.tick().await;
            let steps = steps_of(request);
            match self.accept(request, &steps).await {
                Ok(receipts) => {
                    self.note(&steps, &receipts);
                    return Ok(());
                }
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn note(&self, steps: &[Step], receipts: &[Receipt]) {
        assert_eq!(steps.len(), receipts.len(), "each message has a receipt");
        let line = |(step, receipt): (&Step, &Receipt)| {
            format!("{} {} {} {}", step.request, step.nonce, step.place, receipt.id)
        };
        let lines: Vec<_> = steps.iter().zip(receipts).map(line).collect();
        self.receipts.write(&lines.join("\n"));
    }

    async fn accept(&self, request: &Request, steps: &[Step]) -> Result<Vec<Receipt>, AcceptError> {
        if request.how == How::Batch {
            let messages = steps.iter().zip(&request.messages).map(|(step, (_, session))| {
                let key = request.has_key.then(|| step.name());
                self.prepare(step, key, session.clone())
            });
            let messages = messages.collect::<Result<Vec<_>, _>>()?;
            return self.inbox.accept_batch(messages).await.map_err(|batch| batch.error);
        }
        let (step, session) = (steps[0].clone(), request.messages[0].1.clone());
        let key = request.has_key.then(|| step.name());
        let receipt = match (request.how, step.kind) {
            // The contract of the plain handler, so that the two kinds of transaction are not mixed up.
            (How::InTransaction, _) => {
                self.backend.accept_with_row(&self.inbox, &self.effects, step, key, session).await?
            }
            (_, Kind::Transactional) => finish(self.inbox.accept(&InTransaction(step)), key, session).await?,
            _ => finish(self.inbox.accept(&step), key, session).await?,
        };
        Ok(vec![receipt])
    }

    fn prepare(
        &self,
        step: &Step,
        key: Option<String>,
        session: Option<String>,
    ) -> Result<NewMessage, AcceptError> {
        if step.kind == Kind::Transactional {
            return finish(self.inbox.accept(&InTransaction(step.clone())), key, session).prepare();
        }
        finish(self.inbox.accept(step), key, session).prepare()
    }
}

/// The messages of one try of a request.
fn steps_of(request: &Request) -> Vec<Step> {
    let nonce = if request.has_key { 0 } else { i64::from(uuid::Uuid::new_v4().as_fields().0) };
    let of = u32::try_from(request.messages.len()).expect("a request is short");
    let step = |(place, (kind, _)): (u32, &(Kind, Option<String>))| {
        // In the caller's transaction there is the plain handler's contract only.
        let kind = if request.how == How::InTransaction && *kind == Kind::Transactional {
            Kind::Plain
        } else {
            *kind
        };
        Step { request: request.name.clone(), nonce, place, of, kind }
    };
    (0..).zip(&request.messages).map(step).collect()
}
