//! The settings of a worker and of maintenance, each with its default and the reason for it.

use mailslot_core::FieldError;
use mailslot_core::limits::{LEASE_BATCH_MAX, LEASE_MAX, LEASE_MIN};
use mailslot_core::store::RetentionPolicy;
use std::time::Duration;

/// How a process works on messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// How many handlers run at once. Default 16: enough for handlers that wait, harmless for those that compute.
    pub concurrency: usize,
    /// How many messages one claim takes at most. It does not depend on the concurrency. Default 200, from where a
    /// larger batch gained little on any store that was measured.
    pub batch: usize,
    /// How long a lease holds without a heartbeat: how long a killed worker's messages wait. Default 30 s.
    pub lease: Duration,
    /// How often leases are extended; at most half of the lease. Default 7.5 s: three may be missed.
    pub heartbeat: Duration,
    /// How often an idle worker looks for work that nobody announced. Default 1 s, with jitter.
    pub poll: Duration,
    /// How long running handlers may take to finish at shutdown. Default 25 s: below the 30 s after which common
    /// supervisors kill.
    pub grace: Duration,
    /// How long a handler may run; none by default. Running past it is an error like any other.
    pub time_limit: Option<Duration>,
    /// The worker's name, for people. Default: its process id.
    pub label: Option<String>,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            concurrency: 16,
            batch: 200,
            lease: Duration::from_secs(30),
            heartbeat: Duration::from_millis(7_500),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(25),
            time_limit: None,
            label: None,
        }
    }
}

/// Most handlers that run at once in one process: beyond it, start more processes.
const CONCURRENCY_MAX: usize = 4_096;

impl WorkerConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first one out of bounds, by name.
    pub fn check(&self) -> Result<(), FieldError> {
        within("concurrency", self.concurrency, 1, CONCURRENCY_MAX)?;
        within("batch", self.batch, 1, LEASE_BATCH_MAX)?;
        within("lease", self.lease, LEASE_MIN, LEASE_MAX)?;
        if self.heartbeat.is_zero() || self.heartbeat > self.lease / 2 {
            let problem = format!("is {:?}, with a lease of {:?}", self.heartbeat, self.lease);
            return Err(FieldError::new(
                "heartbeat",
                problem,
                "set it to at most half of the lease, and not to zero",
            ));
        }
        within("poll", self.poll, Duration::from_millis(1), Duration::from_secs(3600))?;
        if self.time_limit.is_some_and(|limit| limit.is_zero()) {
            return Err(FieldError::new("time_limit", "is zero", "leave it out for no limit"));
        }
        Ok(())
    }
}

/// Checks a setting against its bounds.
pub(crate) fn within<T: PartialOrd + std::fmt::Debug>(
    field: &'static str,
    value: T,
    min: T,
    max: T,
) -> Result<(), FieldError> {
    if value < min || value > max {
        return Err(FieldError::new(field, format!("is {value:?}"), format!("use {min:?} to {max:?}")));
    }
    Ok(())
}

/// How a process keeps house. Several processes may do it at once: each step is a short transaction of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceConfig {
    /// How often leases that ran out are looked for, and handoffs whose settlement came early. Default 1 s.
    pub recover_every: Duration,
    /// How often redrives are advanced. Default 250 ms.
    pub redrive_every: Duration,
    /// How often ended messages are deleted. Default 1 min, the first pass at start.
    pub retain_every: Duration,
    /// What is kept for how long. Default: 7 days, dead letters for ever.
    pub retention: RetentionPolicy,
}

impl Default for MaintenanceConfig {
    fn default() -> Self {
        Self {
            recover_every: Duration::from_secs(1),
            redrive_every: Duration::from_millis(250),
            retain_every: Duration::from_secs(60),
            retention: RetentionPolicy::default(),
        }
    }
}

impl MaintenanceConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first one out of bounds, by name.
    pub fn check(&self) -> Result<(), FieldError> {
        let (min, max) = (Duration::from_millis(1), Duration::from_secs(24 * 3600));
        within("maintenance.recover_every", self.recover_every, min, max)?;
        within("maintenance.redrive_every", self.redrive_every, min, max)?;
        within("maintenance.retain_every", self.retain_every, min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(change: impl FnOnce(&mut WorkerConfig)) -> &'static str {
        let mut config = WorkerConfig::default();
        change(&mut config);
        config.check().unwrap_err().field()
    }

    #[test]
    fn defaults_are_valid_and_nonsense_is_named() {
        WorkerConfig::default().check().unwrap();
        MaintenanceConfig::default().check().unwrap();
        assert_eq!(refused(|c| c.concurrency = 0), "concurrency");
        assert_eq!(refused(|c| c.batch = 1_001), "batch");
        assert_eq!(refused(|c| c.lease = Duration::ZERO), "lease");
        assert_eq!(refused(|c| c.heartbeat = c.lease / 2 + Duration::from_nanos(1)), "heartbeat");
        assert_eq!(refused(|c| c.heartbeat = Duration::ZERO), "heartbeat");
        assert_eq!(refused(|c| c.poll = Duration::ZERO), "poll");
        assert_eq!(refused(|c| c.time_limit = Some(Duration::ZERO)), "time_limit");
    }
}
