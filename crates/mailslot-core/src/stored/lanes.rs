//! The numbers of lanes, remembered: an accept would ask for the same few again and again.

use crate::contract::Contract;
use crate::name::EndpointName;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What a lane is known by.
pub type LaneKey = (EndpointName, Contract);

/// The numbers of lanes, which never change once they are committed.
#[derive(Debug, Default)]
pub struct LaneCache(Mutex<HashMap<LaneKey, i64>>);

impl LaneCache {
    /// Those that are remembered.
    pub fn find<'l>(
        &self,
        wanted: impl Iterator<Item = (&'l EndpointName, &'l Contract)>,
    ) -> HashMap<LaneKey, i64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = wanted.map(|(endpoint, contract)| (endpoint.clone(), contract.clone()));
        keys.filter_map(|key| known.get(&key).map(|id| (key, *id))).collect()
    }

    /// Remembers lanes whose numbers are committed.
    pub fn remember(&self, lanes: HashMap<LaneKey, i64>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(lanes);
    }
}
