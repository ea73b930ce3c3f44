//! Back-pressure: accepts wait while messages wait too long to be handled.
//!
//! Workers that fall behind would otherwise only be seen later, as an age that nobody can work off. What is measured is
//! the age of the oldest due message, not their number: it is what users feel, and it needs no tuning to the speed of
//! the handlers.

use super::error::AcceptError;
use crate::store::Store;
use mailslot_core::{EndpointName, FieldError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// How often the age is looked at while messages are accepted or accepts wait.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// When accepts wait, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackPressure {
    /// Accepts wait while a message of the inbox's endpoint has been due for longer than this.
    pub max_age: Duration,
    /// An accept that would wait for longer is refused with [`AcceptError::Overloaded`], which says when to come back.
    /// Default 10 s.
    pub max_wait: Duration,
}

impl BackPressure {
    /// Accepts wait while a message has been due for longer than `max_age`, ten seconds at the most.
    pub fn max_age(max_age: Duration) -> Self {
        Self { max_age, max_wait: Duration::from_secs(10) }
    }

    pub(crate) fn check(&self) -> Result<(), FieldError> {
        if self.max_age.is_zero() {
            let fix = "use what your users can wait for, such as 5 s; leave it out to accept whatever comes";
            return Err(FieldError::new("back_pressure.max_age", "is zero", fix));
        }
        Ok(())
    }
}

/// Where accepts wait.
pub(crate) struct Pressure {
    policy: BackPressure,
    store: Arc<dyn Store>,
    endpoint: EndpointName,
    /// When the age was last looked at; held by the one accept that looks.
    looked: Mutex<Option<Instant>>,
    /// By how much the oldest message is too old.
    excess: watch::Sender<Option<Duration>>,
}

impl Pressure {
    pub(crate) fn new(policy: BackPressure, store: Arc<dyn Store>, endpoint: EndpointName) -> Self {
        Self { policy, store, endpoint, looked: Mutex::new(None), excess: watch::Sender::new(None) }
    }

    /// Lets an accept pass, at once or after a wait.
    pub(crate) async fn pass(&self) -> Result<(), AcceptError> {
        let end = Instant::now() + self.policy.max_wait;
        let mut excess = self.excess.subscribe();
        loop {
            self.look_if_it_is_time().await;
            if excess.borrow_and_update().is_none() {
                return Ok(());
            }
            let now = Instant::now();
            if now >= end {
                return Err(self.overloaded());
            }
            // Whoever waits also looks, so that a look never fails to come.
            let _ = tokio::time::timeout(LOOK_EVERY.min(end - now), excess.changed()).await;
        }
    }

    async fn look_if_it_is_time(&self) {
        let Ok(mut looked) = self.looked.try_lock() else { return };
        if looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return;
        }
        match self.store.oldest_due(&self.endpoint).await {
            Ok(age) => {
                let excess = age.and_then(|age| age.checked_sub(self.policy.max_age));
                self.excess.send_replace(excess);
            }
            // The accept itself meets the failure and reports it.
            Err(error) => tracing::debug!(%error, "failed to read the age of the oldest due message"),
        }
        *looked = Some(Instant::now());
    }

    fn overloaded(&self) -> AcceptError {
        let excess = self.excess.borrow().unwrap_or_default();
        let retry_after = excess.clamp(Duration::from_secs(1), Duration::from_secs(60));
        AcceptError::Overloaded { age: self.policy.max_age + excess, retry_after }
    }
}
