//! Claims in few words.

use super::verbs::{ATTEMPTS, LEASE, MANY};
use crate::message::valid;
use jiff::Timestamp;
use mailslot_core::store::{LaneRequest, LeaseRequest};
use mailslot_core::{Contract, EndpointName, Owner, TenantName};
use std::time::Duration;

/// A claim in the making: of one contract at the default endpoint, as many as a batch may hold.
#[derive(Debug, Clone)]
pub struct Claim {
    lanes: Vec<LaneRequest>,
    owner: Option<Owner>,
    limit: usize,
    duration: Duration,
    tenant: Option<TenantName>,
    due_until: Option<Timestamp>,
}

/// A claim of `contract` at the default endpoint.
pub fn claim(contract: &str) -> Claim {
    let claim =
        Claim { lanes: Vec::new(), owner: None, limit: MANY, duration: LEASE, tenant: None, due_until: None };
    claim.lane(EndpointName::DEFAULT, contract)
}

impl Claim {
    /// Adds a lane.
    pub fn lane(mut self, endpoint: &str, contract: &str) -> Self {
        let contract: Contract = valid(contract.parse());
        let endpoint = valid(EndpointName::new(endpoint));
        self.lanes.push(LaneRequest { endpoint, contract, attempts_max: ATTEMPTS });
        self
    }

    /// Moves every lane to another endpoint.
    pub fn at(mut self, endpoint: &str) -> Self {
        for lane in &mut self.lanes {
            lane.endpoint = valid(EndpointName::new(endpoint));
        }
        self
    }

    /// Claims for another worker.
    pub fn by(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// At most so many.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// For another time than [`LEASE`].
    pub fn lasting(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// Of one tenant only.
    pub fn of_tenant(mut self, tenant: &str) -> Self {
        self.tenant = Some(valid(TenantName::new(tenant)));
        self
    }

    /// Only what was due by then.
    pub fn due_until(mut self, until: Timestamp) -> Self {
        self.due_until = Some(until);
        self
    }

    /// Allows so many attempts in the lanes named so far.
    pub fn attempts(mut self, attempts_max: u32) -> Self {
        for lane in &mut self.lanes {
            lane.attempts_max = attempts_max;
        }
        self
    }

    /// The request, for `owner` unless another one was named.
    pub fn request(self, owner: &Owner) -> LeaseRequest {
        LeaseRequest {
            owner: self.owner.unwrap_or_else(|| owner.clone()),
            lanes: self.lanes,
            limit: self.limit,
            duration: self.duration,
            tenant: self.tenant,
            due_until: self.due_until,
        }
    }
}
