//! Where a process kills itself: a store that dies before or after one of its calls, and writes down what it answered.

use super::fence;
use super::journal::Journal;
use async_trait::async_trait;
use jiff::Timestamp;
use mailslot_core::store::{AppendGroup, Appended, Exchange, Exchanged, ExtendRequest, Extended, Recovered};
use mailslot_core::{AppendIn, Capabilities, InboxStore, OperatorStore, StoreError, WorkSignal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Every named point: before and after each call that changes something, around a handler's effect, and around the
/// commit of a caller's transaction.
pub(crate) const POINTS: &[&str] = &[
    "append.before",
    "append.after",
    "append_in.before",
    "append_in.after",
    "commit.before",
    "commit.after",
    "claim.before",
    "claim.after",
    "settle.before",
    "settle.after",
    "settle_and_claim.before",
    "settle_and_claim.after",
    "recover.before",
    "recover.after",
    "extend.before",
    "extend.after",
    "handler.before_effect",
    "handler.after_effect",
    "transaction.before_effect",
    "transaction.after_effect",
];

/// Kills the process at the n-th passing of one point.
#[derive(Debug, Clone)]
pub(crate) struct KillSwitch {
    point: Arc<str>,
    left: Arc<AtomicU32>,
}

impl KillSwitch {
    /// Reads `point:n`; anything else never kills.
    pub(crate) fn parse(text: &str) -> Self {
        let (point, count) = text.rsplit_once(':').unwrap_or(("", "0"));
        let left = Arc::new(AtomicU32::new(count.parse().expect("a kill point is written as point:n")));
        Self { point: point.into(), left }
    }

    pub(crate) fn pass(&self, point: &str) {
        if *self.point == *point && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            die();
        }
    }
}

/// SIGKILL to this process: nothing is flushed, nothing is unwound.
pub(crate) fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

/// Wraps a store and passes the switch around each call that changes something.
#[derive(Debug, Clone)]
pub(crate) struct KillStore<S> {
    pub(crate) inner: S,
    pub(crate) switch: KillSwitch,
    pub(crate) leases: Journal,
}

impl<S> KillStore<S> {
    async fn around<T>(&self, name: &str, call: impl Future<Output = T>) -> T {
        self.switch.pass(&format!("{name}.before"));
        let answer = call.await;
        self.switch.pass(&format!("{name}.after"));
        answer
    }
}

#[async_trait]
impl<S: InboxStore> InboxStore for KillStore<S> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        self.around("append", self.inner.append(groups)).await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        let name = match (exchange.settlements.is_empty(), &exchange.lease) {
            (true, _) => "claim",
            (false, None) => "settle",
            (false, Some(_)) => "settle_and_claim",
        };
        let settlements = exchange.settlements.clone();
        let noted = async {
            let exchanged = self.inner.exchange(exchange).await?;
            fence::note(&self.leases, &settlements, &exchanged);
            Ok(exchanged)
        };
        self.around(name, noted).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        self.around("extend", self.inner.extend(request)).await
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        self.around("recover", self.inner.recover(limit)).await
    }

    fn work_signal(&self) -> &WorkSignal {
        self.inner.work_signal()
    }
}

#[async_trait]
impl<C: Send + 'static, S: AppendIn<C>> AppendIn<C> for KillStore<S> {
    async fn append_in(
        &self,
        connection: &mut C,
        groups: Vec<AppendGroup>,
    ) -> Result<Vec<Vec<Appended>>, StoreError> {
        self.around("append_in", self.inner.append_in(connection, groups)).await
    }
}

mailslot_core::delegate_operator_store!([S: OperatorStore] KillStore<S>, inner);
