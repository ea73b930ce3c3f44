//! `cargo xtask check`: what can be said without running a test. Writes nothing.

use crate::step::{self, cargo, has_cargo_command, say};
use crate::tidy;
use anyhow::Result;

/// Runs each check; the first that finds something ends it.
pub(crate) fn run() -> Result<()> {
    step::run("format", &mut cargo(&["fmt", "--all", "--check"])?)?;
    tidy::run()?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step::run("clippy", &mut cargo(&clippy)?)?;
    // Libraries only: the library `mailslot` and the program `mailslot` would write to the same page.
    let docs = ["doc", "--workspace", "--lib", "--no-deps"];
    step::run("documentation", cargo(&docs)?.env("RUSTDOCFLAGS", "-D warnings"))?;
    let deny = deny()?;
    say(&format!("check: format, tidy, clippy and documentation passed; {deny}"));
    Ok(())
}

fn deny() -> Result<&'static str> {
    if has_cargo_command("deny")? {
        step::run("licences and advisories", &mut cargo(&["deny", "check"])?)?;
        return Ok("licences and advisories too");
    }
    say(
        "==> licences and advisories: NOT CHECKED, because cargo-deny is not here: `cargo install --locked cargo-deny`",
    );
    Ok("licences and advisories were NOT CHECKED")
}
