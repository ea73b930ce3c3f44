//! `mailslot work`.

mod child;
mod config;
mod group;
mod handle;
mod progress;
mod route;
mod signals;
mod tail;

use crate::args::{Global, Keep, duration, keep, retry};
use crate::error::Error;
use crate::output::Output;
use crate::store::{Missing, open};
use handle::Handle;
use mailslot::{AnyStore, ControlError, HandlerOptions, Inbox, Retry, WorkerControl};
use route::Route;
use std::pin::pin;
use std::time::Duration;

/// The payload is the command's standard input; `MAILSLOT_ID`, `MAILSLOT_CONTRACT` and more say the rest. Exit code 0
/// completes the message, 65 dead-letters it, everything else tries it again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For messages of contracts that GLOB matches, as name or name@version, run COMMAND by `sh -c`; the first of
    /// several routes that matches is taken
    #[arg(long = "route", value_name = "GLOB=exec:COMMAND", required = true, value_parser = Route::read)]
    routes: Vec<Route>,
    /// Handle the messages of this endpoint
    #[arg(long, default_value = "default")]
    endpoint: String,
    /// Handle all that is due now, then stop
    #[arg(long)]
    drain: bool,
    /// How many commands run at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    concurrency: usize,
    /// How many messages one claim takes at most
    #[arg(long, value_name = "N", default_value_t = 200)]
    batch: usize,
    /// How long a command may run
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
    /// How long a lease holds without a heartbeat: how long a killed worker's messages wait
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    lease: Duration,
    /// How often leases are extended; at most half of the lease [default: a quarter of it]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    heartbeat: Option<Duration>,
    /// How often to look for work that nobody announced
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    poll: Duration,
    /// How long running commands may take to finish at shutdown
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "25s")]
    grace: Duration,
    /// How often a message is tried in all [default: 5]
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// How long to wait after a failure: exponential:FIRST..LONGEST, linear:STEP..LONGEST, fixed:TIME or never
    #[arg(long, value_name = "POLICY", value_parser = retry, default_value = "exponential:5s..5m")]
    retry: Retry,
    /// Keep completed messages, and their keys, for this long, or `never` delete them
    #[arg(long, value_name = "TIME", value_parser = keep, default_value = "7d")]
    keep_completed: Keep,
    /// Keep skipped messages for this long
    #[arg(long, value_name = "TIME", value_parser = keep, default_value = "7d")]
    keep_skipped: Keep,
    /// Keep cancelled messages for this long
    #[arg(long, value_name = "TIME", value_parser = keep, default_value = "7d")]
    keep_cancelled: Keep,
    /// Keep dead letters for this long
    #[arg(long, value_name = "TIME", value_parser = keep, default_value = "never")]
    keep_dead_lettered: Keep,
}

/// Works until a signal, or until everything that is due is done.
pub(crate) async fn run(args: Args, global: &Global) -> Result<(), Error> {
    let config = config::worker(&args)?;
    let store = open(global, Missing::Create).await?;
    let inbox = build(&args, config, store)?;
    let stop = signals::listen(args.grace)?;
    let progress = progress::follow(&inbox, global);
    let worked = if args.drain { drain(&inbox, stop).await } else { Ok(inbox.run(stop.asked()).await?) };
    progress.finish();
    worked?;
    progress::summary(&inbox.stats(), args.drain, Output::new(global))
}

fn build(args: &Args, config: mailslot::WorkerConfig, store: AnyStore) -> Result<Inbox<AnyStore>, Error> {
    let retry =
        args.max_attempts.map_or_else(|| args.retry.clone(), |max| args.retry.clone().max_attempts(max));
    let mut builder = Inbox::builder(store)
        .endpoint(&args.endpoint)
        .worker(config)
        .maintenance(config::maintenance(args))
        .retry(retry);
    for route in args.routes.clone() {
        let handle = Handle::new(&route, args.time_limit);
        builder = builder.raw_handler_for(
            move |contract| route.takes(contract),
            move |payload, context| handle.clone().run(payload, context),
            HandlerOptions::new(),
        );
    }
    Ok(builder.build()?)
}

/// Works until all that is due now is done, or until a signal.
async fn drain(inbox: &Inbox<AnyStore>, stop: signals::Stop) -> Result<(), Error> {
    let mut running = pin!(inbox.run(stop.clone().asked()));
    let control = inbox.control();
    let drained = tokio::select! {
        // The worker must have started before it can be told to drain.
        biased;
        ended = &mut running => return Ok(ended?),
        drained = drained(&control) => drained,
    };
    stop.stop();
    running.await?;
    Ok(drained?)
}

async fn drained(control: &WorkerControl) -> Result<(), ControlError> {
    control.drain().await
}
