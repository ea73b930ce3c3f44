//! `mailslot migrate`.

use crate::args::Global;
use crate::error::Error;
use crate::output::Output;
use crate::store::{Missing, open};
use mailslot::Operator;
use serde::Serialize;

/// Every other command that opens a store migrates it too; this one does nothing else.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct SchemaView {
    backend: &'static str,
    found: u32,
    wanted: u32,
}

/// Migrates and reports the version.
pub(crate) async fn run(_: Args, global: &Global) -> Result<(), Error> {
    let operator = Operator::new(open(global, Missing::Create).await?);
    let schema = operator.schema().await?;
    let view = SchemaView { backend: schema.backend, found: schema.found, wanted: schema.wanted };
    let text = format!(
        "the {} store has schema {}, and this program wants {}",
        view.backend, view.found, view.wanted
    );
    Output::new(global).result(text, &view)
}
