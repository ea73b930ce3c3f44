//! A message in the making: what the flags and a line say beside the payload.

use super::{KeyPolicy, MessageArgs, OnConflict};
use crate::error::Error;
use crate::exit::Exit;
use mailslot::{
    Accept, AcceptError, AnyStore, ContentType, Contract, FieldError, Inbox, MessageId, NewMessage, Payload,
    Priority, Visibility,
};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// Everything beside the payload, unchecked: the library checks it.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) contract: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) key: Option<String>,
    pub(super) id: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) session: Option<String>,
    pub(super) endpoint: Option<String>,
    pub(super) due: Option<Visibility>,
    pub(super) priority: Option<Priority>,
    pub(super) correlation: Option<String>,
    pub(super) causation: Option<String>,
    pub(super) traceparent: Option<String>,
    pub(super) tracestate: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    key_policy: KeyPolicy,
    on_conflict: OnConflict,
}

impl Draft {
    /// What the flags say.
    pub(super) fn from_flags(flags: &MessageArgs) -> Self {
        let due_in = flags.due_in.map(Visibility::After);
        Self {
            contract: flags.contract.clone(),
            content_type: flags.content_type.clone(),
            key: flags.key.clone(),
            id: flags.id.clone(),
            tenant: flags.tenant.clone(),
            session: flags.session.clone(),
            endpoint: flags.endpoint.clone(),
            due: due_in.or(flags.due_at.map(Visibility::At)),
            priority: flags.priority.map(Into::into),
            correlation: flags.correlation.clone(),
            causation: flags.causation.clone(),
            traceparent: flags.traceparent.clone(),
            tracestate: flags.tracestate.clone(),
            headers: flags.headers.iter().cloned().collect(),
            key_policy: flags.key_policy,
            on_conflict: flags.on_conflict,
        }
    }

    /// Whether the payload is meant to be JSON. Source: RFC 6839, section 3.1, for the suffix.
    pub(super) fn is_json(&self) -> bool {
        let Some(content_type) = &self.content_type else { return true };
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence == "application/json" || essence.ends_with("+json")
    }

    /// Finds a typing error now, and not in the worker.
    pub(super) fn check_payload(&self, payload: &[u8], no_check: bool) -> Result<(), Error> {
        if no_check || !self.is_json() {
            return Ok(());
        }
        serde_json::from_slice::<IgnoredAny>(payload).map(|_| ()).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            let fix = "mend it, name another --content-type, or add --no-check";
            Error::new(Exit::BadInput, format!("the payload is not JSON ({place}): {fix}"))
        })
    }

    /// The checked message: what is wrong with it is found here, before anything is stored.
    pub(super) fn prepare(
        &self,
        inbox: &Inbox<AnyStore>,
        payload: Vec<u8>,
    ) -> Result<NewMessage, AcceptError> {
        let (contract, payload) = self.content(payload)?;
        self.clone().decorate(inbox.accept_raw(contract, payload))?.prepare()
    }

    fn content(&self, payload: Vec<u8>) -> Result<(Contract, Payload), FieldError> {
        let missing =
            || FieldError::new("contract", "is missing", "say what the payload is, as name@version");
        let contract = self.contract.as_deref().ok_or_else(missing)?.parse()?;
        let content_type =
            self.content_type.as_deref().map(ContentType::new).transpose()?.unwrap_or_default();
        Ok((contract, Payload::new(payload, content_type)?))
    }

    fn decorate<T>(self, accept: Accept<'_, T>) -> Result<Accept<'_, T>, FieldError> {
        fn with<A, V>(accept: A, value: Option<V>, set: impl FnOnce(A, V) -> A) -> A {
            match value {
                Some(value) => set(accept, value),
                None => accept,
            }
        }
        let id: Option<MessageId> = self.id.as_deref().map(str::parse).transpose()?;
        if self.tracestate.is_some() && self.traceparent.is_none() {
            return Err(FieldError::new("tracestate", "stands alone", "give a traceparent with it"));
        }
        let (tracestate, keyed) = (self.tracestate, self.key.is_some());
        let accept = with(accept, id, |accept, id| accept.id(id.as_uuid()));
        let accept = with(accept, self.key, Accept::idempotency_key);
        let accept = with(accept, self.tenant, Accept::tenant);
        let accept = with(accept, self.session, Accept::session);
        let accept = with(accept, self.endpoint, Accept::endpoint);
        let accept = with(accept, self.due, Accept::visibility);
        let accept = with(accept, self.priority, Accept::priority);
        let accept = with(accept, self.correlation, Accept::correlation);
        let accept = with(accept, self.causation, Accept::causation);
        let accept = with(accept, self.traceparent, |accept, parent| accept.trace(parent, tracestate));
        let accept =
            self.headers.into_iter().fold(accept, |accept, (name, value)| accept.header(name, value));
        if !keyed {
            return Ok(accept);
        }
        Ok(accept.key_policy(self.key_policy.into()).on_conflict(self.on_conflict.into()))
    }
}

impl From<KeyPolicy> for mailslot::KeyPolicy {
    fn from(policy: KeyPolicy) -> Self {
        match policy {
            KeyPolicy::Retained => Self::Retained,
            KeyPolicy::UntilFinished => Self::UntilFinished,
            KeyPolicy::UntilStarted => Self::UntilStarted,
        }
    }
}

impl From<OnConflict> for mailslot::OnConflict {
    fn from(on_conflict: OnConflict) -> Self {
        match on_conflict {
            OnConflict::Refuse => Self::Refuse,
            OnConflict::ReturnFirst => Self::ReturnFirst,
        }
    }
}
