//! What the lower crates must not drag in: the core no runtime, driver or HTTP; the engine no driver or HTTP.

use super::finding::Finding;
use crate::step::cargo;
use anyhow::{Context, Result, bail};

const RUNTIMES: &[&str] = &["tokio", "async-std", "smol", "async-executor", "futures-executor", "tower"];
const DRIVERS: &[&str] = &[
    "sqlx",
    "sqlx-core",
    "sqlx-sqlite",
    "sqlx-postgres",
    "rusqlite",
    "libsqlite3-sys",
    "diesel",
    "tokio-postgres",
    "tiberius",
    "azure_data_cosmos",
    "lapin",
    "rdkafka",
    "aws-sdk-sqs",
    "azservicebus",
    "fe2o3-amqp",
    "async-nats",
];
const HTTP: &[&str] = &["http", "hyper", "axum", "reqwest", "ureq", "h2"];

/// Asks cargo for what each of them builds with, tests excluded.
pub(crate) fn check() -> Result<Vec<Finding>> {
    let core = find("mailslot-core", &list("mailslot-core")?, &[RUNTIMES, DRIVERS, HTTP]);
    let engine = find("mailslot-engine", &list("mailslot-engine")?, &[DRIVERS, HTTP]);
    Ok([core, engine].concat())
}

fn list(package: &str) -> Result<String> {
    let arguments =
        ["tree", "--package", package, "--edges", "normal", "--target", "all", "--prefix", "none"];
    let output = cargo(&arguments)?.output().context("cargo tree does not start")?;
    if !output.status.success() {
        bail!("cargo tree of {package} fails: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn find(package: &str, list: &str, banned: &[&[&str]]) -> Vec<Finding> {
    let mut names: Vec<_> = list.lines().filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| banned.iter().any(|list| list.contains(name)));
    let finding = |name| {
        let fix =
            format!("see `cargo tree -p {package} -e normal -i {name}` and move the use to a higher crate");
        Finding::new(
            format!("crates/{package}/Cargo.toml"),
            1,
            format!("`{package}` builds with `{name}`"),
            fix,
        )
    };
    names.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[test]
    fn a_driver_is_found_however_deep() {
        let list =
            "mailslot-core v0.1.0 (crates/mailslot-core)\nbytes v1.12.2\ntokio v1.54.1\ntokio v1.54.1 (*)\n";
        let found = lines(&find("mailslot-core", list, &[RUNTIMES, DRIVERS]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("crates/mailslot-core/Cargo.toml:1: `mailslot-core` builds with `tokio`;")
        );
        assert!(find("mailslot-engine", list, &[DRIVERS, HTTP]).is_empty());
    }
}
