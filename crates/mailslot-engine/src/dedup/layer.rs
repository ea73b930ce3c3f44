//! The layer: look up, handle, record.

use futures_util::future::BoxFuture;
use mailslot_core::store::{Concluded, Conclusion, Known, Lookup, Question};
use mailslot_core::{DeliveryIdentity, EndpointName, LedgerStore, StoreError, Unrecognisable};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tower::{Layer, Service};

type IdOf<Req> = Arc<dyn Fn(&Req) -> Option<String> + Send + Sync>;
type Skipped<Req, Res> = Arc<dyn Fn(&Req) -> Res + Send + Sync>;
type Handled<Res> = Arc<dyn Fn(&Res) -> bool + Send + Sync>;
type OnDuplicate = Arc<dyn Fn(&DeliveryIdentity) + Send + Sync>;

/// A tower layer that lets a service handle each delivery of an endpoint once: after it has succeeded with one, it is not
/// called again for the same message id.
///
/// The order is: look up, handle, record. So a delivery whose handling fails is handled again when it comes again, and one
/// whose handling succeeded just before a crash is, too. A store that fails fails the call, which has to give the delivery
/// back to its broker; it is never taken for a duplicate.
///
/// A delivery without a usable id is handled without asking the store.
///
/// ```
/// use mailslot_core::{EndpointName, MemoryStore};
/// use mailslot_engine::Dedup;
/// use tower::{Layer as _, Service as _, ServiceExt as _};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// struct Order { id: String }
///
/// let dedup = Dedup::new(
///     MemoryStore::new(),
///     EndpointName::new("billing")?,
///     |order: &Order| Some(order.id.clone()),
///     |_| "skipped",
/// );
/// let mut service = dedup.layer(tower::service_fn(|_: Order| async { Ok::<_, std::io::Error>("billed") }));
/// for answer in ["billed", "skipped"] {
///     assert_eq!(service.ready().await?.call(Order { id: "m1".to_owned() }).await?, answer);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Dedup<Req, Res> {
    store: Arc<dyn LedgerStore>,
    endpoint: EndpointName,
    id_of: IdOf<Req>,
    skipped: Skipped<Req, Res>,
    handled: Handled<Res>,
    on_duplicate: Option<OnDuplicate>,
    counts: watch::Sender<DedupCounts>,
}

/// What a [`Dedup`] has seen since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DedupCounts {
    /// Deliveries that were handled and recorded.
    pub recorded: u64,
    /// Deliveries that were known and not handled again.
    pub duplicates: u64,
    /// Deliveries without a usable id.
    pub unrecognisable: u64,
    /// Calls of the store that failed.
    pub store_errors: u64,
}

impl<Req, Res> Dedup<Req, Res> {
    /// A layer for the deliveries of `endpoint`. `id_of` gives the id that the broker delivered, and `skipped` the answer to a
    /// duplicate.
    ///
    /// The endpoint is the configured one of the subscriber. An address in the message is none: endpoints that share a store
    /// would skip each other's first deliveries.
    pub fn new(
        store: impl LedgerStore,
        endpoint: EndpointName,
        id_of: impl Fn(&Req) -> Option<String> + Send + Sync + 'static,
        skipped: impl Fn(&Req) -> Res + Send + Sync + 'static,
    ) -> Self {
        Self {
            store: Arc::new(store),
            endpoint,
            id_of: Arc::new(id_of),
            skipped: Arc::new(skipped),
            handled: Arc::new(|_| true),
            on_duplicate: None,
            counts: watch::Sender::new(DedupCounts::default()),
        }
    }

    /// Which answers say that the delivery was handled. By default all that are no errors.
    ///
    /// An answer that something goes on elsewhere is none: recorded, a redelivery could not set up again what a crash
    /// has lost.
    #[must_use]
    pub fn handled_if(mut self, handled: impl Fn(&Res) -> bool + Send + Sync + 'static) -> Self {
        self.handled = Arc::new(handled);
        self
    }

    /// Is called for each duplicate, before the answer. It must not wait; one that panics changes nothing.
    #[must_use]
    pub fn on_duplicate(mut self, observe: impl Fn(&DeliveryIdentity) + Send + Sync + 'static) -> Self {
        self.on_duplicate = Some(Arc::new(observe));
        self
    }

    /// What it has seen, now and with each change.
    pub fn counts(&self) -> watch::Receiver<DedupCounts> {
        self.counts.subscribe()
    }

    fn count(&self, change: impl FnOnce(&mut DedupCounts)) {
        self.counts.send_modify(change);
    }

    /// The identity of a delivery that can be recognised.
    fn identify(&self, request: &Req) -> Option<DeliveryIdentity> {
        let id = (self.id_of)(request);
        match DeliveryIdentity::new(&self.endpoint, id.as_deref()) {
            Ok(identity) => Some(identity),
            Err(why) => {
                self.warn_once(why);
                None
            }
        }
    }

    /// The first one is worth a line; the others are counted.
    fn warn_once(&self, why: Unrecognisable) {
        self.count(|counts| counts.unrecognisable += 1);
        if self.counts.borrow().unrecognisable == 1 {
            tracing::warn!(
                endpoint = %self.endpoint, %why,
                "a delivery cannot be recognised when it comes again; it is handled all the same, and so are others like it"
            );
        }
    }

    /// Whether it was handled before.
    async fn is_known(&self, identity: &DeliveryIdentity) -> Result<bool, LedgerFailed> {
        let question = Question { identity: Some(identity.clone()), session: None };
        let found = self.store.look_up(std::slice::from_ref(&question)).await;
        let found = found.map_err(|error| self.failed("look up", &error))?;
        match found.first() {
            Some(Lookup { known: Some(known), .. }) if known.is_completed() => Ok(true),
            // Somebody else has it, or keeps it for later.
            Some(Lookup { known: Some(Known::Stored { .. } | Known::Claimed { .. }), .. }) => {
                Err(LedgerFailed { what: "handle at once" })
            }
            _ => Ok(false),
        }
    }

    async fn record(&self, identity: DeliveryIdentity) -> Result<(), LedgerFailed> {
        let concluded = self.store.conclude(vec![Conclusion::Handled(identity)]).await;
        let concluded = concluded.map_err(|error| self.failed("record", &error))?;
        if concluded.first() == Some(&Concluded::Recorded) {
            self.count(|counts| counts.recorded += 1);
        }
        Ok(())
    }

    /// The cause is for operators; what leaves the process says only what was not done.
    fn failed(&self, what: &'static str, error: &StoreError) -> LedgerFailed {
        self.count(|counts| counts.store_errors += 1);
        tracing::error!(endpoint = %self.endpoint, %error, what, "the ledger of deliveries failed; the delivery goes back");
        LedgerFailed { what }
    }

    /// One that panics changes nothing for the delivery.
    fn observe(&self, identity: &DeliveryIdentity) {
        let Some(observe) = &self.on_duplicate else { return };
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| observe(identity))).is_err() {
            tracing::error!(endpoint = %self.endpoint, "an observer of duplicates panicked; the duplicate is skipped all the same");
        }
    }

    async fn serve<S>(self, mut inner: S, request: Req) -> Result<Res, DedupError<S::Error>>
    where
        S: Service<Req, Response = Res>,
    {
        let Some(identity) = self.identify(&request) else {
            return inner.call(request).await.map_err(DedupError::Handler);
        };
        if self.is_known(&identity).await? {
            self.count(|counts| counts.duplicates += 1);
            self.observe(&identity);
            return Ok((self.skipped)(&request));
        }
        let response = inner.call(request).await.map_err(DedupError::Handler)?;
        if (self.handled)(&response) {
            self.record(identity).await?;
        }
        Ok(response)
    }
}

impl<Req, Res> Clone for Dedup<Req, Res> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            endpoint: self.endpoint.clone(),
            id_of: Arc::clone(&self.id_of),
            skipped: Arc::clone(&self.skipped),
            handled: Arc::clone(&self.handled),
            on_duplicate: self.on_duplicate.clone(),
            counts: self.counts.clone(),
        }
    }
}

impl<Req, Res> fmt::Debug for Dedup<Req, Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dedup").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl<Req, Res, S> Layer<S> for Dedup<Req, Res> {
    type Service = DedupService<Req, Res, S>;

    fn layer(&self, inner: S) -> Self::Service {
        DedupService { dedup: self.clone(), inner }
    }
}

/// A service behind a [`Dedup`].
#[derive(Debug)]
pub struct DedupService<Req, Res, S> {
    dedup: Dedup<Req, Res>,
    inner: S,
}

impl<Req, Res, S: Clone> Clone for DedupService<Req, Res, S> {
    fn clone(&self) -> Self {
        Self { dedup: self.dedup.clone(), inner: self.inner.clone() }
    }
}

impl<Req, Res, S> Service<Req> for DedupService<Req, Res, S>
where
    Req: Send + 'static,
    Res: Send + 'static,
    S: Service<Req, Response = Res> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Res;
    type Error = DedupError<S::Error>;
    type Future = BoxFuture<'static, Result<Res, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(DedupError::Handler)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        // The one that is ready is taken, and its copy gets ready for the next call.
        let copy = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, copy);
        Box::pin(self.dedup.clone().serve(ready, request))
    }
}

/// Why a delivery was not handled, or was and could not be recorded. It has to be delivered again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DedupError<E> {
    /// The store failed, or somebody else has the delivery. The cause is in the log of this process only.
    #[error("the ledger of deliveries could not {what} this one; deliver it again")]
    Ledger {
        /// What was not done.
        what: &'static str,
    },
    /// The service behind it failed.
    #[error(transparent)]
    Handler(E),
}

/// What was not done.
#[derive(Debug, Clone, Copy)]
struct LedgerFailed {
    what: &'static str,
}

impl<E> From<LedgerFailed> for DedupError<E> {
    fn from(failed: LedgerFailed) -> Self {
        Self::Ledger { what: failed.what }
    }
}
