//! The table on standard output.

use super::{Better, Measured, Report, Row};
use std::io::{self, Write};

pub(super) fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let machine = &report.machine;
    let load = machine.load.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.1}"));
    writeln!(
        out,
        "{} cores, {}, {}, load {load} at the start",
        machine.cores, machine.processor, machine.system
    )?;
    writeln!(out, "medians of {} repetitions, ours and references in turn", report.repetitions)?;
    writeln!(out, "ratio: how ours compares with the line's; above 1 ours is better")?;
    if report.quick {
        writeln!(out, "quick run: the numbers mean nothing")?;
    }
    for row in &report.rows {
        print_row(row, out)?;
    }
    Ok(())
}

fn print_row(row: &Row, out: &mut impl Write) -> io::Result<()> {
    let by = match row.better {
        Better::Rate => "",
        Better::Latency => " (ratio by p50)",
    };
    writeln!(out, "\n{} / {} / {}{by}", row.suite.name(), row.store.name(), row.case)?;
    writeln!(
        out,
        "  {:<16} {:>10} {:>7} {:>10} {:>9} {:>9} {:>9} {:>11}",
        "", "per second", "ratio", "CPU us/msg", "CPU ratio", "p50 ms", "p99 ms", "msg/commit"
    )?;
    row.measured.iter().try_for_each(|measured| print_measured(measured, out))
}

fn print_measured(measured: &Measured, out: &mut impl Write) -> io::Result<()> {
    let or_dash = |figure: Option<f64>, digits: usize| {
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
    };
    writeln!(
        out,
        "  {:<16} {:>10.0} {:>7.2} {:>10.1} {:>9.2} {:>9} {:>9} {:>11}",
        measured.kind.name(),
        measured.per_second,
        measured.ratio,
        measured.cpu_us,
        measured.cpu_ratio,
        or_dash(measured.p50_ms, 2),
        or_dash(measured.p99_ms, 2),
        or_dash(measured.per_commit, 1),
    )
}
