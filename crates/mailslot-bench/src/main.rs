//! `mailslot-bench`: throughput and latency of Mailslot beside raw references of the same durability, in one run.
//!
//! Absolute numbers belong to a machine and a minute; what carries over is the ratio between two neighbours. So each
//! case runs ours and its references in turn, several times, and reports medians. See `docs/benchmarks.md`.

mod contender;
mod options;
mod peers;
mod report;
mod server;
mod suite;

use anyhow::{Context as _, bail};
use clap::Parser as _;
use options::{Durability, Options};
use peers::Peers;
use report::Report;
use server::Server;
use std::sync::Arc;
use suite::Bench;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = if std::env::args().nth(1).is_some_and(|argument| argument == contender::WORKER_ARGUMENT) {
        runtime.block_on(contender::serve())
    } else {
        runtime.block_on(measure(&Options::parse()))
    };
    // What a sample left behind must not keep the program from ending.
    runtime.shutdown_background();
    ended
}

/// Waits for Ctrl-C or a request to end.
async fn interruption() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot wait for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

async fn measure(options: &Options) -> anyhow::Result<()> {
    let server = if options.stores().contains(&Durability::Postgres) {
        Some(Arc::new(Server::start(options.postgres.as_deref()).await?))
    } else {
        None
    };
    let mut report = Report::new(options);
    if let Some(server) = &server {
        report.describe(server.facts().await?);
    }
    let peers = match &options.peers {
        Some(program) => Some(Peers::find(program).await?),
        None => None,
    };
    report.list(peers.iter().flat_map(|peers| peers.listed.clone()).collect());
    let bench = Bench { options, server: server.as_ref(), peers: peers.as_ref() };
    let finished = tokio::select! {
        finished = suite::run(&bench, &mut report) => finished,
        interrupted = interruption() => interrupted.and_then(|()| bail!("interrupted")),
    };
    if let Some(server) = &server {
        server.clean().await?;
    }
    finished?;
    report.finish(options)
}
