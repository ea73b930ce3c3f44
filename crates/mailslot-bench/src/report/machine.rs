//! Where it ran.

use serde::Serialize;

/// What a reader must know to compare.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) system: String,
    pub(super) processor: String,
    pub(super) cores: usize,
    /// Runnable processes when the run began, averaged over a minute; where the system tells.
    pub(super) load: Option<f64>,
}

impl Machine {
    pub(super) fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        let load = load.and_then(|load| load.split_whitespace().next()?.parse().ok());
        let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        Self { system, processor: processor().unwrap_or_else(|| "unknown".to_owned()), cores, load }
    }
}

fn processor() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
