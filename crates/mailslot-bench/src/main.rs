//! `mailslot-bench`: throughput and latency of Mailslot beside raw references of the same durability, in one run.
//!
//! Absolute numbers belong to a machine and a minute; what carries over is the ratio between two neighbours. So each
//! case runs ours and its references in turn, several times, and reports medians. See `docs/benchmarks.md`.

mod contender;
mod measure;
mod message;
mod options;
mod report;
mod suite;

use clap::Parser as _;
use options::Options;
use report::Report;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::new(&options);
    let finished = runtime.block_on(suite::run(&options, &mut report));
    // What a sample left behind must not keep the program from ending.
    runtime.shutdown_background();
    finished?;
    report.print(&mut std::io::stdout().lock())?;
    if let Some(path) = &options.json {
        report.write_json(path)?;
    }
    if let Some(path) = &options.svg {
        report.write_svg(path)?;
    }
    Ok(())
}
