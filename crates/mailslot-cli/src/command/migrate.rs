//! `mailslot migrate`.

use crate::args::Global;
use crate::error::Error;
use crate::output::Output;
use crate::store::{Missing, open};
use mailslot::Operator;
use serde::Serialize;

/// Every other command that opens a store migrates it too; this one does nothing else.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the SQL that makes the schema, and change nothing
    #[arg(long)]
    print: bool,
}

#[derive(Serialize)]
struct SchemaView {
    backend: &'static str,
    found: u32,
    wanted: u32,
}

/// Migrates and reports the version.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    if args.print {
        return print(global);
    }
    let operator = Operator::new(open(global, Missing::Create).await?);
    let schema = operator.schema().await?;
    let view = SchemaView { backend: schema.backend, found: schema.found, wanted: schema.wanted };
    let text = format!(
        "the {} store has schema {}, and this program wants {}",
        view.backend, view.found, view.wanted
    );
    Output::new(global).result(text, &view)
}

/// For those who apply a schema by hand: nothing is opened.
fn print(global: &Global) -> Result<(), Error> {
    let sql = mailslot::schema_sql(&global.store)?
        .unwrap_or_else(|| "-- this kind of store has no schema\n".into());
    Output::new(global).result(sql.trim_end(), &serde_json::json!({ "sql": sql }))
}
