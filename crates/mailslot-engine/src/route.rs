//! Which handler takes which contract.

use crate::handler::BoxedHandler;
use mailslot_core::store::LaneRequest;
use mailslot_core::{Contract, EndpointName, Retry};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

/// A handler with its layers and settings.
pub(crate) struct Route {
    pub(crate) service: BoxedHandler,
    pub(crate) retry: Retry,
    pub(crate) time_limit: Option<Duration>,
}

/// Tells whether a route takes a contract that is not known in advance.
pub(crate) type ContractPattern = Box<dyn Fn(&Contract) -> bool + Send + Sync>;

/// Every route of one endpoint.
#[derive(Default)]
pub(crate) struct Routes {
    by_contract: HashMap<Contract, Route>,
    by_pattern: Vec<(ContractPattern, Route)>,
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_contract.keys()).finish()
    }
}

impl Routes {
    pub(crate) fn insert(&mut self, contract: Contract, route: Route) {
        self.by_contract.insert(contract, route);
    }

    pub(crate) fn insert_pattern(&mut self, pattern: ContractPattern, route: Route) {
        self.by_pattern.push((pattern, route));
    }

    /// The route of a contract: its own, else the first pattern that takes it.
    pub(crate) fn get(&self, contract: &Contract) -> Option<&Route> {
        let by_pattern = || self.by_pattern.iter().find(|(takes, _)| takes(contract)).map(|(_, route)| route);
        self.by_contract.get(contract).or_else(by_pattern)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_contract.is_empty() && self.by_pattern.is_empty()
    }

    pub(crate) fn has_patterns(&self) -> bool {
        !self.by_pattern.is_empty()
    }

    /// What a worker of this endpoint asks the store for; `seen` are contracts that the store holds messages of.
    pub(crate) fn lanes(&self, endpoint: &EndpointName, seen: &BTreeSet<Contract>) -> Vec<LaneRequest> {
        let contracts: BTreeSet<&Contract> = self.by_contract.keys().chain(seen).collect();
        let lane = |contract: &Contract| {
            let attempts_max = self.get(contract)?.retry.attempts_max();
            Some(LaneRequest { endpoint: endpoint.clone(), contract: contract.clone(), attempts_max })
        };
        contracts.into_iter().filter_map(lane).collect()
    }
}
