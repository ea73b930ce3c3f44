//! The input: public webhook payloads of GitHub. See `assets/webhooks/README.md`.

use mailslot::{AnyStore, ContentType, Contract, Inbox, Payload, Receipt};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

const WEBHOOKS: &str = include_str!("../../assets/webhooks/webhooks.ndjson");

/// One webhook, as it would arrive.
#[derive(Debug, Clone)]
pub(super) struct Webhook {
    pub(super) contract: Contract,
    key: String,
    tenant: Option<&'static str>,
    session: Option<&'static str>,
    payload: &'static str,
}

#[derive(Deserialize)]
struct Line<'a> {
    event: &'a str,
    index: u32,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct Origin<'a> {
    #[serde(borrow)]
    repository: Option<Repository<'a>>,
    #[serde(borrow)]
    organization: Option<Organization<'a>>,
}

#[derive(Deserialize)]
struct Repository<'a> {
    full_name: Option<&'a str>,
}

#[derive(Deserialize)]
struct Organization<'a> {
    login: Option<&'a str>,
}

/// Every webhook, in the order of its file.
pub(super) fn webhooks() -> anyhow::Result<Vec<Webhook>> {
    WEBHOOKS.lines().map(Webhook::read).collect()
}

/// The contracts that occur.
pub(super) fn contracts() -> anyhow::Result<BTreeSet<Contract>> {
    Ok(webhooks()?.into_iter().map(|webhook| webhook.contract).collect())
}

impl Webhook {
    fn read(line: &'static str) -> anyhow::Result<Self> {
        let Line { event, index, payload } = serde_json::from_str(line)?;
        let payload = payload.get();
        let origin: Origin<'static> = serde_json::from_str(payload)?;
        Ok(Self {
            contract: Contract::new(format!("github.{event}"), 1)?,
            key: format!("{event}/{index}"),
            tenant: origin.organization.and_then(|organization| organization.login),
            session: origin.repository.and_then(|repository| repository.full_name),
            payload,
        })
    }

    /// Delivers it.
    pub(super) async fn accept(self, inbox: Inbox<AnyStore>) -> anyhow::Result<Receipt> {
        let payload = Payload::new(self.payload, ContentType::default())?;
        let mut accept = inbox.accept_raw(self.contract, payload).idempotency_key(self.key);
        if let Some(tenant) = self.tenant {
            accept = accept.tenant(tenant);
        }
        if let Some(session) = self.session {
            accept = accept.session(session);
        }
        Ok(accept.await?)
    }

    /// The same key with other content: a mistake of its sender.
    pub(super) fn forged(&self) -> Self {
        Self { payload: "{}", ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_webhook_with_a_key_of_its_own() {
        let webhooks = webhooks().unwrap();
        let keys: BTreeSet<_> = webhooks.iter().map(|webhook| &webhook.key).collect();
        assert_eq!((webhooks.len(), keys.len(), contracts().unwrap().len()), (329, 329, 58));
        assert_eq!(webhooks.iter().filter(|webhook| webhook.session.is_some()).count(), 280);
        assert_eq!(webhooks.iter().filter(|webhook| webhook.tenant.is_some()).count(), 120);
    }
}
