//! The programs of the servers: found where they are installed, or fetched.

use super::{debian, newest};
use crate::step;
use anyhow::{Context, Result, bail};
use mailslot_servers::{Directory, RabbitMq, environment, find_program};
use std::path::{Path, PathBuf};

/// Where Debian 12 puts its PostgreSQL: the oldest that we support.
const DEBIAN_POSTGRES_BIN: &str = "/usr/lib/postgresql/15/bin";

/// Where the servers' programs are.
pub(crate) enum Programs {
    /// It does not matter: the environment names servers that run already.
    ServersAreGiven,
    /// On this machine.
    Here(Installed),
}

/// The programs on this machine.
pub(crate) struct Installed {
    /// The directory of PostgreSQL 15.
    pub(crate) postgres_bin: PathBuf,
    /// The directory of the newest PostgreSQL.
    pub(crate) newest_bin: PathBuf,
    /// The program of pgbouncer.
    pub(crate) pgbouncer: PathBuf,
    /// The directory of RabbitMQ.
    pub(crate) rabbitmq_bin: PathBuf,
    /// Holds a copy of the newest PostgreSQL, if the servers' account cannot reach the fetched one.
    _copy: Option<Directory>,
}

impl Programs {
    /// Finds the programs; installs or fetches those that are missing.
    pub(crate) fn provide() -> Result<Self> {
        let variables = [
            environment::POSTGRES,
            environment::POSTGRES_NEWEST,
            environment::PGBOUNCER,
            environment::RABBITMQ,
            environment::POSTGRES_BIN,
            environment::POSTGRES_NEWEST_BIN,
        ];
        if variables.into_iter().all(|name| given(name).is_some()) {
            step::note("==> servers: those that the environment names");
            return Ok(Self::ServersAreGiven);
        }
        let postgres_bin = given(environment::POSTGRES_BIN).unwrap_or_else(|| DEBIAN_POSTGRES_BIN.into());
        let given_newest_bin = given(environment::POSTGRES_NEWEST_BIN);
        debian::install(&missing_packages(&postgres_bin, given_newest_bin.as_deref())?)?;
        let (newest_bin, copy) = match given_newest_bin {
            Some(bin) => (bin, None),
            None => newest::provide()?,
        };
        let pgbouncer = find_program("pgbouncer").context("pgbouncer was installed and is not found")?;
        let rabbitmq_bin = RabbitMq::find()?;
        Ok(Self::Here(Installed { postgres_bin, newest_bin, pgbouncer, rabbitmq_bin, _copy: copy }))
    }
}

fn given(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn missing_packages(postgres_bin: &Path, newest_bin: Option<&Path>) -> Result<Vec<&'static str>> {
    let mut packages = Vec::new();
    if !postgres_bin.join("postgres").is_file() {
        if postgres_bin != Path::new(DEBIAN_POSTGRES_BIN) {
            bail!("{} is set, and {} has no `postgres`", environment::POSTGRES_BIN, postgres_bin.display());
        }
        packages.push("postgresql-15");
    }
    if find_program("pgbouncer").is_none() {
        packages.push("pgbouncer");
    }
    if RabbitMq::find().is_err() {
        packages.push("rabbitmq-server");
    }
    if newest_bin.is_none() && newest::needs_pip()? {
        packages.push("python3-pip");
    }
    Ok(packages)
}
