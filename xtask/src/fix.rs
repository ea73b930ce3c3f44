//! `cargo xtask fix`: writes what `check` and `tidy` would complain about, where a program can.

use crate::step::{self, cargo, say, workspace};
use crate::tidy::STATE_MACHINE;
use anyhow::{Context, Result};

/// Formats the sources and writes the generated documents.
pub(crate) fn run() -> Result<()> {
    step::run("format", &mut cargo(&["fmt", "--all"])?)?;
    let file = workspace()?.join(STATE_MACHINE);
    std::fs::write(file, mailslot_core::state_machine_markdown())
        .with_context(|| format!("{STATE_MACHINE} cannot be written"))?;
    say(&format!("==> wrote {STATE_MACHINE}"));
    Ok(())
}
