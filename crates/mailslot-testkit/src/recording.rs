//! A store that counts its calls.

use crate::wrap::{Around, Wrapped};
use mailslot_core::StoreError;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

/// A store that counts its calls by method: `RecordingStore::new(store, calls.clone())`.
pub type RecordingStore<S> = Wrapped<S, Calls>;

/// How often each method was called. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Calls {
    /// Calls of one method, such as `append`.
    pub fn of(&self, operation: &str) -> u64 {
        self.counts().get(operation).copied().unwrap_or_default()
    }

    /// Calls of every method that was called.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Around for Calls {
    async fn around<T: Send>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(operation).or_default() += 1;
        call.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailslot_core::{InboxStore as _, MemoryStore, OperatorStore as _};

    #[tokio::test]
    async fn calls_are_counted_by_method() {
        let calls = Calls::default();
        let store = RecordingStore::new(Arc::new(MemoryStore::new()), calls.clone());
        store.now().await.unwrap();
        store.recover(1).await.unwrap();
        store.recover(1).await.unwrap();
        assert_eq!((calls.of("recover"), calls.of("now"), calls.of("check")), (2, 1, 0));
        store.check().await.unwrap();
        assert_eq!(calls.counts().values().sum::<u64>(), 4);
    }
}
