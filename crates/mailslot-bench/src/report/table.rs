//! The table on standard output.

use super::aims::{Aim, Bound};
use super::{Better, Measured, Report, Row};
use crate::contender::Kind;
use std::io::{self, Write};

pub(super) fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    print_place(report, out)?;
    writeln!(out, "medians of {} repetitions, ours and references in turn", report.repetitions)?;
    writeln!(out, "ratio: how ours compares with the line's; above 1 ours is better")?;
    if report.quick {
        writeln!(out, "quick run: the numbers mean nothing")?;
    }
    report.rows.iter().try_for_each(|row| print_row(row, out))?;
    print_peers(report, out)?;
    print_aims(&report.aims, out)
}

fn print_place(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let machine = &report.machine;
    let load = machine.load.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.1}"));
    writeln!(
        out,
        "{} cores, {}, {}, load {load} at the start",
        machine.cores, machine.processor, machine.system
    )?;
    let Some(server) = &report.server else { return Ok(()) };
    writeln!(
        out,
        "PostgreSQL {}, fsync {}, synchronous_commit {}, shared_buffers {}, max_wal_size {}{}",
        server.version,
        server.fsync,
        server.synchronous_commit,
        server.shared_buffers,
        server.max_wal_size,
        if server.local { "" } else { ", elsewhere: its CPU time is not measured" }
    )
}

fn print_row(row: &Row, out: &mut impl Write) -> io::Result<()> {
    let by = match row.better {
        Better::Rate => "",
        Better::Latency => " (ratio by p50)",
    };
    writeln!(out, "\n{} / {} / {}{by}", row.suite.name(), row.store.name(), row.case)?;
    writeln!(
        out,
        "  {:<24} {:>10} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8}",
        "",
        "per second",
        "ratio",
        "CPU us",
        "server us",
        "CPU ratio",
        "p50 ms",
        "p99 ms",
        "msg/commit",
        "log B"
    )?;
    row.measured.iter().try_for_each(|measured| print_measured(measured, out))
}

fn print_measured(measured: &Measured, out: &mut impl Write) -> io::Result<()> {
    let or_dash = |figure: Option<f64>, digits: usize| {
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
    };
    // The CPU time of another program is not known here.
    let known = measured.kind != Kind::Peer;
    writeln!(
        out,
        "  {:<24} {:>10.0} {:>7.2} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8}",
        measured.name(),
        measured.per_second,
        measured.ratio,
        or_dash(known.then_some(measured.cpu_us), 1),
        or_dash(measured.server_cpu_us, 1),
        or_dash(known.then_some(measured.cpu_ratio), 2),
        or_dash(measured.p50_ms, 2),
        or_dash(measured.p99_ms, 2),
        or_dash(measured.per_commit, 1),
        or_dash(measured.wal_bytes, 0),
    )?;
    if measured.accept_p50_ms.is_some() {
        write!(
            out,
            "    accept p50 {} ms, p99 {} ms; start at most {} ms late",
            or_dash(measured.accept_p50_ms, 2),
            or_dash(measured.accept_p99_ms, 2),
            or_dash(measured.max_ms, 0),
        )?;
        if let Some(behind) = measured.behind {
            write!(
                out,
                "; {behind:.2} accepted for each executed, {} refused and repeated",
                measured.refused
            )?;
        }
        writeln!(out)?;
    }
    if measured.rates.is_empty() {
        return Ok(());
    }
    let rates: Vec<String> = measured.rates.iter().map(|rate| format!("{:.1}", rate / 1e3)).collect();
    writeln!(out, "    thousands in each second: {}", rates.join(" "))
}

fn print_peers(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if !report.peers.is_empty() {
        writeln!(out, "\nother queues, each with its own client and worker:")?;
    }
    let mut peers = report.peers.iter();
    peers.try_for_each(|peer| writeln!(out, "  {} {}: {}", peer.name, peer.version, peer.settings))
}

fn print_aims(aims: &[Aim], out: &mut impl Write) -> io::Result<()> {
    if aims.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{:<66} {:>8} {:>10}", "aims", "aim", "found")?;
    for Aim { what, bound, found, met } in aims {
        let bound = match bound {
            Bound::AtLeast(least) => format!(">= {least}"),
            Bound::AtMost(most) => format!("<= {most}"),
        };
        writeln!(out, "{what:<66} {bound:>8} {found:>10.2}{}", if *met { "" } else { "  missed" })?;
    }
    Ok(())
}
