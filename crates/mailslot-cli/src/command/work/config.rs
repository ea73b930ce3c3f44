//! From flags to the settings of the worker.

use super::Args;
use crate::error::Error;
use mailslot::store::RetentionPolicy;
use mailslot::{FieldError, MaintenanceConfig, WorkerConfig};

/// The settings, checked before anything is opened.
pub(super) fn worker(args: &Args) -> Result<WorkerConfig, Error> {
    if args.time_limit.is_some_and(|limit| limit.is_zero()) {
        return Err(FieldError::new("time_limit", "is zero", "leave it out for no limit").into());
    }
    let config = WorkerConfig {
        concurrency: args.concurrency,
        batch: args.batch,
        lease: args.lease,
        heartbeat: args.heartbeat.unwrap_or(args.lease / 4),
        poll: args.poll,
        grace: args.grace,
        // The handler keeps the limit itself, so that it can say what the command wrote until then.
        time_limit: None,
        label: Some(label()),
    };
    config.check()?;
    Ok(config)
}

/// How this process keeps house.
pub(super) fn maintenance(args: &Args) -> MaintenanceConfig {
    let retention = RetentionPolicy {
        completed: args.keep_completed.limit(),
        skipped: args.keep_skipped.limit(),
        cancelled: args.keep_cancelled.limit(),
        dead_lettered: args.keep_dead_lettered.limit(),
    };
    MaintenanceConfig { retention, ..MaintenanceConfig::default() }
}

/// Where this process is found.
fn label() -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let host = host.trim();
    format!("{} process {}", if host.is_empty() { "this host" } else { host }, std::process::id())
}
