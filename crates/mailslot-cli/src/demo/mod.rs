//! `mailslot demo`: what Mailslot does, in half a minute, with real input and real crashes.
//!
//! Read in this order: this story, `input` (the webhooks), `accept`, `handlers` (and their faults), `worker` (the
//! process that runs them), `supervise` (the process that watches it), `audit` (was anything lost?), `redrive`.

mod accept;
mod audit;
mod effects;
mod folder;
mod handlers;
mod input;
mod notice;
mod redrive;
mod screen;
mod story;
mod summary;
mod supervise;
mod worker;

use folder::Folder;
use handlers::Handlers;
use screen::Screen;
use std::path::PathBuf;
use story::Demo;

/// It makes a store of its own, whatever --store says, and breaks nothing else.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Put the store into this new or empty folder, instead of a temporary one
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// What a child process of the demo does
    #[arg(long, requires = "dir", hide = true)]
    worker: Option<Handlers>,
}

/// Runs the demo, or the part of it that a child process plays. With `json`, the result is one JSON object instead of
/// the story.
pub(crate) async fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let folder = match (args.dir, args.worker) {
        (Some(dir), Some(handlers)) => return worker::run(&Folder::existing(dir)?, handlers).await,
        (Some(dir), None) => Folder::create(dir)?,
        (None, _) => Folder::temporary()?,
    };
    let mut demo = Demo::open(folder, Screen::new(json)).await?;
    let interrupted = tokio::select! {
        told = demo.tell() => return told,
        interrupted = tokio::signal::ctrl_c() => interrupted,
    };
    demo.stop().await?;
    interrupted?;
    anyhow::bail!("interrupted; what was accepted is in {} and stays there", demo.store())
}
