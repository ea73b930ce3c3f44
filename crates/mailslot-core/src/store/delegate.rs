//! For stores around stores.

/// Implements [`OperatorStore`](crate::OperatorStore) by passing every call on to a field: for a store that changes
/// only the hot path of another one.
///
/// ```
/// use mailslot_core::{MemoryStore, OperatorStore};
///
/// struct Around<S> {
///     inner: S,
/// }
///
/// mailslot_core::delegate_operator_store!([S: OperatorStore] Around<S>, inner);
/// # fn is_operator_store(_: &impl OperatorStore) {}
/// # is_operator_store(&Around { inner: MemoryStore::new() });
/// ```
#[macro_export]
macro_rules! delegate_operator_store {
    ($generics:tt $store:ty, $inner:tt) => {
        $crate::delegate_operator_store! { @impl $generics $store, $inner;
            query(filter: &$crate::store::Filter, page: &$crate::store::PageRequest)
                -> $crate::store::Page<$crate::store::MessageRecord>;
            get(id: $crate::MessageId) -> Vec<$crate::store::MessageDetail>;
            counts() -> Vec<$crate::store::Count>;
            oldest_due(endpoint: &$crate::EndpointName) -> Option<::std::time::Duration>;
            change(change: $crate::store::Change, filter: &$crate::store::Filter, limit: usize)
                -> $crate::store::Changed;
            settle_handoff(id: $crate::MessageId, result: $crate::store::HandoffResult) -> bool;
            keep_handoff(
                id: $crate::MessageId,
                result: $crate::store::HandoffResult,
                keep_for: ::std::time::Duration
            ) -> bool;
            apply_kept_handoffs(limit: usize) -> u64;
            sessions(blocked_only: bool, limit: usize) -> Vec<$crate::store::SessionRecord>;
            leases(limit: usize) -> Vec<$crate::store::LeaseRecord>;
            retain(
                endpoint: Option<&$crate::EndpointName>,
                policy: &$crate::store::RetentionPolicy,
                limit: usize
            ) -> u64;
            create_redrive(spec: $crate::store::RedriveSpec) -> $crate::store::Redrive;
            redrives() -> Vec<$crate::store::Redrive>;
            act_on_redrive(id: $crate::store::RedriveId, action: $crate::store::RedriveAction)
                -> Option<$crate::store::Redrive>;
            step_redrives() -> Vec<$crate::store::Redrive>;
            schema() -> $crate::store::SchemaInfo;
            check() -> Vec<$crate::store::Violation>;
            repair() -> Vec<$crate::store::Violation>;
        }
    };
    (@impl [$($generics:tt)*] $store:ty, $inner:tt;
        $($method:ident($($name:ident: $type:ty),*) -> $answer:ty;)+
    ) => {
        #[$crate::async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<$($generics)*> $crate::OperatorStore for $store {
            $(async fn $method(&self, $($name: $type),*) -> Result<$answer, $crate::StoreError> {
                self.$inner.$method($($name),*).await
            })+
        }
    };
}
