//! A worker that runs beside a load.

use crate::contender::Worker;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Runs until it is stopped; dropped, as by an interrupted measurement, it works no more.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    pub(crate) fn start(worker: &Arc<dyn Worker>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let worker = worker.clone();
        Self { stop: Some(stop), task: tokio::spawn(async move { worker.run(stopped).await }) }
    }

    /// Whether it ended by itself, which is a failure.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops it in order.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(stop) = self.stop.take() {
            // A worker that failed does not listen.
            let _ = stop.send(());
        }
        (&mut self.task).await?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
