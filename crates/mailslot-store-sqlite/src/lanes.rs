//! The numbers of lanes, remembered: an accept would ask for the same few again and again.

use mailslot_core::{Contract, EndpointName};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What a lane is known by.
pub(crate) type LaneKey = (EndpointName, Contract);

/// The numbers of lanes, which never change once they are committed.
#[derive(Debug, Default)]
pub(crate) struct LaneCache(Mutex<HashMap<LaneKey, i64>>);

impl LaneCache {
    pub(crate) fn find<'l>(
        &self,
        wanted: impl Iterator<Item = (&'l EndpointName, &'l Contract)>,
    ) -> HashMap<LaneKey, i64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = wanted.map(|(endpoint, contract)| (endpoint.clone(), contract.clone()));
        keys.filter_map(|key| known.get(&key).map(|id| (key, *id))).collect()
    }

    pub(crate) fn remember(&self, lanes: HashMap<LaneKey, i64>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(lanes);
    }
}
