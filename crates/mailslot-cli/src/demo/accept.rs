//! Accepting: everything at once, some of it again, and one by mistake.

use super::input::Webhook;
use super::screen::Screen;
use anyhow::Context;
use mailslot::{AcceptError, AcceptOutcome, AnyStore, Inbox, Receipt};
use std::time::{Duration, Instant};

/// How many webhooks are delivered twice.
pub(super) const REPEATED: usize = 50;

/// What accepting everything gave.
#[derive(Debug)]
pub(super) struct Accepted {
    /// One for each webhook, in their order.
    pub(super) receipts: Vec<Receipt>,
    pub(super) took: Duration,
}

impl Accepted {
    /// Messages a second.
    #[expect(clippy::cast_precision_loss, reason = "a few hundred messages")]
    pub(super) fn per_second(&self) -> f64 {
        self.receipts.len() as f64 / self.took.as_secs_f64().max(1e-6)
    }
}

/// Delivers every webhook at the same time.
pub(super) async fn all(
    inbox: &Inbox<AnyStore>,
    webhooks: &[Webhook],
    screen: &mut Screen,
) -> anyhow::Result<Accepted> {
    screen.begin(webhooks.len() as u64, "accepted");
    let start = Instant::now();
    let deliveries: Vec<_> =
        webhooks.iter().map(|webhook| tokio::spawn(webhook.clone().accept(inbox.clone()))).collect();
    let mut receipts = Vec::with_capacity(webhooks.len());
    for delivery in deliveries {
        receipts.push(delivery.await??);
        screen.progress(receipts.len() as u64, "");
    }
    screen.end();
    Ok(Accepted { receipts, took: start.elapsed() })
}

/// Delivers some webhooks again. Returns how many were recognised: same id, same time, not stored.
pub(super) async fn again(
    inbox: &Inbox<AnyStore>,
    webhooks: &[Webhook],
    first: &[Receipt],
) -> anyhow::Result<Vec<Receipt>> {
    let mut recognised = Vec::new();
    for (webhook, first) in webhooks.iter().zip(first).take(REPEATED) {
        let receipt = webhook.clone().accept(inbox.clone()).await?;
        let known = matches!(receipt.outcome, AcceptOutcome::AlreadyAccepted { .. });
        if known && (receipt.id, receipt.accepted_at) == (first.id, first.accepted_at) {
            recognised.push(receipt);
        }
    }
    Ok(recognised)
}

/// Delivers a known key with other content. Returns the refusal.
pub(super) async fn forged(inbox: &Inbox<AnyStore>, webhook: &Webhook) -> anyhow::Result<AcceptError> {
    let refused = webhook.forged().accept(inbox.clone()).await.err();
    let refused = refused.context("a known key with other content was accepted")?;
    refused.downcast::<AcceptError>().context("the known key was not compared")
}
