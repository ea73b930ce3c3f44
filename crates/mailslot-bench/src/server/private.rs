//! A private server for a run, if PostgreSQL is installed: it writes through to the disk and commits as a fresh
//! installation does, with a cache and a log of the size that people give a server.

use anyhow::Context as _;
use mailslot_servers::{PostgresConfig, PostgresServer, find_program};
use std::path::{Path, PathBuf};

/// Where Debian and its kin put the versions that are installed.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Beyond the defaults.
const SETTINGS: [&str; 3] = ["shared_buffers = 1GB", "max_wal_size = 4GB", "synchronous_commit = on"];

/// Starts it; it ends with the value.
pub(super) async fn start() -> anyhow::Result<PostgresServer> {
    let bin = find_bin().context(
        "no PostgreSQL is installed: install it, name a server with --postgres, or leave it out with --store full,normal,memory",
    )?;
    let config = PostgresConfig {
        fsync: true,
        settings: SETTINGS.map(String::from).into(),
        ..PostgresConfig::default()
    };
    Ok(tokio::task::spawn_blocking(move || PostgresServer::start_from(&bin, config, None)).await??)
}

fn find_bin() -> Option<PathBuf> {
    let named = std::env::var_os(mailslot_servers::environment::POSTGRES_BIN).map(PathBuf::from);
    let installed = || find_program("initdb")?.parent().map(Path::to_owned);
    named.or_else(installed).or_else(newest_version)
}

fn newest_version() -> Option<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).ok()?.flatten();
    let number = |name: &str| name.parse::<u32>().ok();
    let found = versions.filter_map(|version| Some((number(version.file_name().to_str()?)?, version.path())));
    let newest = found.filter(|(_, path)| path.join("bin/initdb").exists()).max_by_key(|(number, _)| *number);
    newest.map(|(_, path)| path.join("bin"))
}
