//! What a store does beside its calls, every few seconds.

use crate::store::Shared;
use std::sync::Arc;

pub(crate) fn start(_shared: &Arc<Shared>) {}
