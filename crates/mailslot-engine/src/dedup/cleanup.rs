//! Letting old records go.

use mailslot_core::{EndpointName, FieldError, LedgerStore, StoreError};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// Deletes the records of one endpoint that are older than its retention, and never another endpoint's.
///
/// Make the retention longer than a broker may take to deliver again and than people may take to replay: a delivery whose
/// record is gone is handled as a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleanup {
    /// Whose records go.
    pub endpoint: EndpointName,
    /// For how long they are kept. Default: 7 days.
    pub retention: Duration,
    /// How often they are looked at. Default: an hour.
    pub every: Duration,
    /// How many go in one transaction; full ones are repeated until one is not full. Default: 1,000.
    pub batch: usize,
}

impl Cleanup {
    /// With the defaults, for an endpoint.
    pub fn of(endpoint: EndpointName) -> Self {
        let hour = Duration::from_secs(3600);
        Self { endpoint, retention: 7 * 24 * hour, every: hour, batch: 1_000 }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// One of them is zero.
    pub fn check(&self) -> Result<(), FieldError> {
        let zeros = [
            ("cleanup.retention", self.retention.is_zero(), "keep records longer than a redelivery may take"),
            ("cleanup.every", self.every.is_zero(), "look at most once a second"),
            ("cleanup.batch", self.batch == 0, "delete at least one record at once"),
        ];
        let zero = zeros.into_iter().find(|(_, is_zero, _)| *is_zero);
        zero.map_or(Ok(()), |(field, _, fix)| Err(FieldError::new(field, "is zero", fix)))
    }

    /// Cleans up at once and then every so often, until `shutdown` is ready: then it stops in the middle of a pass. A
    /// pass that fails is logged and repeated with the next one.
    ///
    /// # Errors
    /// See [`Cleanup::check`].
    pub async fn run(
        self,
        store: impl LedgerStore,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), FieldError> {
        self.run_counted(store, shutdown, |_| {}).await
    }

    /// As [`Cleanup::run`], and tells how many records each pass has deleted.
    pub(crate) async fn run_counted(
        self,
        store: impl LedgerStore,
        shutdown: impl Future<Output = ()>,
        deleted_so_many: impl Fn(usize),
    ) -> Result<(), FieldError> {
        self.check()?;
        let mut shutdown = pin!(shutdown);
        let mut tick = tokio::time::interval(self.every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let work = async {
            loop {
                tick.tick().await;
                match self.pass(&store).await {
                    Ok(0) => {}
                    Ok(deleted) => {
                        deleted_so_many(deleted);
                        tracing::info!(endpoint = %self.endpoint, deleted, "old records of deliveries were deleted");
                    }
                    Err(error) => {
                        tracing::warn!(endpoint = %self.endpoint, %error, "old records of deliveries stay for now");
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = &mut shutdown => Ok(()),
            () = work => Ok(()),
        }
    }

    /// Deletes all that is too old now, batch by batch, and returns how many there were.
    ///
    /// # Errors
    /// The store failed. What was deleted before stays so.
    pub async fn pass(&self, store: &impl LedgerStore) -> Result<usize, StoreError> {
        let mut deleted = 0;
        loop {
            let batch = store.purge(&self.endpoint, self.retention, self.batch).await?;
            deleted += batch;
            if batch < self.batch {
                return Ok(deleted);
            }
        }
    }
}
