//! Messages out of few names, so that keys, sessions and tenants meet.

use crate::message::{MessageBuilder, message, valid};
use crate::store::{Claim, claim};
use mailslot_core::store::Filter;
use mailslot_core::{
    EndpointName, IdempotencyKey, KeyPolicy, MessageId, NewMessage, Priority, Reason, SessionKey, Status,
    TenantName,
};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use std::time::Duration;
use uuid::Uuid;

pub(super) const ENDPOINTS: [&str; 2] = ["default", "billing"];
const CONTRACTS: [&str; 2] = ["order", "order@2"];
const TENANTS: [&str; 2] = ["acme", "umbrella"];
const SESSIONS: [&str; 2] = ["s", "t"];
const KEYS: [&str; 4] = ["a", "A", "b", "c"];

/// A message to come.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    contract: &'static str,
    endpoint: &'static str,
    tenant: Option<&'static str>,
    session: Option<&'static str>,
    key: Option<(&'static str, KeyPolicy, bool)>,
    id: Option<u128>,
    payload: u8,
    priority: Priority,
    due_in: i64,
}

impl Draft {
    /// The message; `number` becomes its id unless it has one.
    pub(super) fn build(self, number: u128) -> NewMessage {
        let mut builder: MessageBuilder = message(self.contract)
            .endpoint(self.endpoint)
            .payload(vec![self.payload])
            .priority(self.priority)
            .due_in(self.due_in)
            .workflow("conversation", if self.payload == 0 { "zero" } else { "other" });
        if let Some(tenant) = self.tenant {
            builder = builder.tenant(tenant);
        }
        if let Some(session) = self.session {
            builder = builder.session(session);
        }
        if let Some((key, policy, return_first)) = self.key {
            builder = builder.key(key).policy(policy);
            builder = if return_first { builder.return_first() } else { builder };
        }
        match self.id {
            Some(id) => builder.id(id_of(id)).build(),
            // Generated, but not by chance: the same case gives the same ids each time.
            None => NewMessage { id: id_of(1_000 + number), ..builder.build() },
        }
    }
}

fn id_of(number: u128) -> MessageId {
    valid(MessageId::supplied(Uuid::from_u128(number)))
}

pub(super) fn any_draft() -> impl Strategy<Value = Draft> {
    let place = (select(&CONTRACTS[..]), select(&ENDPOINTS[..]));
    let scope = (weighted(0.5, select(&TENANTS[..])), weighted(0.5, select(&SESSIONS[..])));
    let policies = vec![KeyPolicy::Retained, KeyPolicy::UntilFinished, KeyPolicy::UntilStarted];
    let key = (select(&KEYS[..]), select(policies), any::<bool>());
    let identity = (weighted(0.4, key), weighted(0.2, 1u128..4));
    let delay = prop_oneof![3 => Just(0i64), 1 => 0i64..100];
    let rest = (0u8..2, select(Priority::ALL.to_vec()), delay);
    (place, scope, identity, rest).prop_map(
        |((contract, endpoint), (tenant, session), (key, id), (payload, priority, due_in))| Draft {
            contract,
            endpoint,
            tenant,
            session,
            key,
            id,
            payload,
            priority,
            due_in,
        },
    )
}

pub(super) fn any_filter() -> impl Strategy<Value = Filter> {
    let scope = (
        weighted(0.2, select(&ENDPOINTS[..])),
        weighted(0.2, select(&CONTRACTS[..])),
        weighted(0.2, select(&TENANTS[..])),
        weighted(0.2, select(&SESSIONS[..])),
    );
    let rest = (
        weighted(0.1, select(&KEYS[..])),
        weighted(0.3, proptest::sample::subsequence(Status::ALL.to_vec(), 1..4)),
        weighted(0.1, select(vec![Reason::Failed, Reason::Operator, Reason::Crashed, Reason::LeaseExpired])),
        weighted(0.1, proptest::collection::vec(prop_oneof![1u128..4, 1_000u128..1_020], 0..4)),
        weighted(0.1, 0u32..3),
    );
    (scope, rest).prop_map(
        |((endpoint, contract, tenant, session), (key, statuses, reason, ids, generation))| Filter {
            ids: ids.map(|ids| ids.into_iter().map(id_of).collect()),
            statuses,
            endpoint: endpoint.map(|name| valid(EndpointName::new(name))),
            contract: contract.map(|name| valid(name.parse())),
            tenant: tenant.map(|name| valid(TenantName::new(name))),
            session: session.map(|name| valid(SessionKey::new(name))),
            idempotency_key: key.map(|name| valid(IdempotencyKey::new(name))),
            reason,
            generation,
            ..Filter::default()
        },
    )
}

/// A claim of some lanes.
pub(super) fn any_claim() -> impl Strategy<Value = Claim> {
    let lanes: Vec<_> = CONTRACTS.iter().flat_map(|&c| ENDPOINTS.iter().map(move |&e| (e, c))).collect();
    let lanes = prop_oneof![2 => Just(lanes.clone()), 1 => proptest::sample::subsequence(lanes, 1..4)];
    (lanes, 1usize..6, 10u64..60, weighted(0.2, select(&TENANTS[..])), 1u32..5).prop_map(
        |(lanes, limit, seconds, tenant, attempts)| {
            let (endpoint, contract) = lanes[0];
            let first = claim(contract).at(endpoint);
            let all =
                lanes[1..].iter().fold(first, |claim, (endpoint, contract)| claim.lane(endpoint, contract));
            let all = all.limit(limit).lasting(Duration::from_secs(seconds)).attempts(attempts);
            tenant.into_iter().fold(all, Claim::of_tenant)
        },
    )
}
