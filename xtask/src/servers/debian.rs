//! Programs that come with the operating system.

use crate::step;
use anyhow::{Context, Result, bail};
use mailslot_servers::find_program;
use std::process::Command;

/// Installs packages if this is root on Debian, and says what to do if it is not.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    if !rustix::process::geteuid().is_root() || find_program("apt-get").is_none() {
        bail!(
            "the tests need {names}: install them, on Debian 12 by `sudo apt-get install {names}`; \
             docs/testing.md says how to use a PostgreSQL that is somewhere else"
        );
    }
    apt_get("update the list of packages", &["update"])?;
    let options = ["install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"];
    let arguments: Vec<_> = options.into_iter().chain(packages.iter().copied()).collect();
    apt_get(&format!("install {names}"), &arguments).with_context(|| format!("{names} cannot be installed"))
}

fn apt_get(name: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.arg("-qq").args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    step::prepare(name, || step::run_quietly(&mut command))
}
