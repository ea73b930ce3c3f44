//! The circuit breaker of an endpoint in this process: while what its handlers depend on is broken, nothing new begins.

use mailslot_core::breaker::{Breaker, BreakerConfig, Circuit, Signal};
use mailslot_core::handler::{ErrorClass, VerdictKind};
use mailslot_core::{Cancellation, FieldError, HandlerError, Verdict};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

type Predicate = Arc<dyn Fn(&HandlerError) -> bool + Send + Sync>;

/// When to leave a broken dependency alone. See [`BreakerConfig`] for when it opens and closes.
///
/// Failures that may pass count, and so do panics and time limits. What a handler chose, skips and dead letters of permanent
/// errors say nothing, and neither does the store: its outage is no failure of the handlers.
#[derive(Clone, Default)]
pub struct CircuitBreaker {
    config: BreakerConfig,
    counts_permanent: bool,
    excludes: Option<Predicate>,
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker").field("config", &self.config).finish_non_exhaustive()
    }
}

impl CircuitBreaker {
    /// With these settings.
    pub fn new(config: BreakerConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Counts permanent errors as failures, too.
    pub fn count_permanent(mut self) -> Self {
        self.counts_permanent = true;
        self
    }

    /// Errors for which this is true say nothing about the dependency. It must not panic.
    pub fn exclude(mut self, excludes: impl Fn(&HandlerError) -> bool + Send + Sync + 'static) -> Self {
        self.excludes = Some(Arc::new(excludes));
        self
    }

    pub(crate) fn check(&self) -> Result<(), FieldError> {
        self.config.check()
    }

    /// What a verdict says, if it says anything.
    fn signal(&self, verdict: &Verdict) -> Option<Signal> {
        let excluded = |failure| self.excludes.as_ref().is_some_and(|excludes| excludes(failure));
        match (verdict.kind(), verdict.failure()) {
            (VerdictKind::Complete | VerdictKind::Suspend(_), _) => Some(Signal::Success),
            (_, Some(failure)) if excluded(failure) => None,
            (_, Some(failure)) => match failure.class() {
                ErrorClass::Retryable => Some(Signal::Failure),
                ErrorClass::Permanent => self.counts_permanent.then_some(Signal::Failure),
                ErrorClass::Discard => None,
            },
            (VerdictKind::Retry(_) | VerdictKind::DeadLetter | VerdictKind::Skip, None) => None,
        }
    }
}

/// The breaker that the worker and the subscriber of an inbox share; always closed if there is none.
pub(crate) struct CircuitGate {
    settings: CircuitBreaker,
    breaker: Option<Mutex<Breaker>>,
    circuit: watch::Sender<Circuit>,
    on_change: Box<dyn Fn(Circuit) + Send + Sync>,
}

impl CircuitGate {
    /// `on_change` is told of each change.
    pub(crate) fn new(
        settings: Option<CircuitBreaker>,
        on_change: impl Fn(Circuit) + Send + Sync + 'static,
    ) -> Self {
        let breaker = settings.as_ref().map(|one| Mutex::new(Breaker::new(one.config, now())));
        let (settings, circuit) = (settings.unwrap_or_default(), watch::Sender::default());
        Self { settings, breaker, circuit, on_change: Box::new(on_change) }
    }

    /// How it stands, now and with each change.
    pub(crate) fn watch(&self) -> watch::Receiver<Circuit> {
        self.circuit.subscribe()
    }

    fn breaker(&self) -> Option<MutexGuard<'_, Breaker>> {
        self.breaker.as_ref().map(|breaker| breaker.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How it stands now.
    pub(crate) fn circuit(&self) -> Circuit {
        let Some(circuit) = self.breaker().map(|mut breaker| breaker.circuit(now())) else {
            return Circuit::Closed;
        };
        self.tell(circuit);
        circuit
    }

    /// How many may be handled at once, of those that `wanted` to be.
    pub(crate) fn limit(&self, wanted: usize) -> usize {
        match self.circuit() {
            Circuit::Closed => wanted,
            Circuit::HalfOpen => wanted.min(1),
            Circuit::Open => 0,
        }
    }

    /// Until when it stays open, if it is.
    pub(crate) fn open_until(&self) -> Option<Instant> {
        self.breaker()?.open_until().map(Instant::from_std)
    }

    /// Waits while it is open.
    pub(crate) async fn not_open(&self) {
        while self.circuit() == Circuit::Open {
            let Some(until) = self.open_until() else { continue };
            sleep_until(until).await;
        }
    }

    /// Takes what the verdict of a handler says that began at `begun`. One that was told to stop says nothing.
    pub(crate) fn report(&self, verdict: &Verdict, begun: Instant, cancellation: &Cancellation) {
        if cancellation.cause().is_some() {
            return;
        }
        let Some((mut breaker, signal)) = self.breaker().zip(self.settings.signal(verdict)) else { return };
        let circuit = breaker.on(signal, begun.into_std(), now());
        drop(breaker);
        self.tell(circuit);
    }

    fn tell(&self, circuit: Circuit) {
        let changed = self.circuit.send_if_modified(|told| std::mem::replace(told, circuit) != circuit);
        if changed {
            tracing::warn!(%circuit, "the circuit breaker has changed");
            (self.on_change)(circuit);
        }
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailslot_core::Handoff;

    #[test]
    fn only_what_a_dependency_did_says_something_about_it() {
        let plain = CircuitBreaker::default();
        let strict = plain.clone().count_permanent();
        let lenient = plain.clone().exclude(|error| error.source().to_string() == "busy");
        let failed = |error: HandlerError| Verdict::from(error);
        let table = [
            (&plain, Verdict::complete(), Some(Signal::Success)),
            (&plain, Handoff::new("bank").unwrap().into(), Some(Signal::Success)),
            (&plain, failed(HandlerError::retryable("busy")), Some(Signal::Failure)),
            (&lenient, failed(HandlerError::retryable("busy")), None),
            (&lenient, failed(HandlerError::retryable("down")), Some(Signal::Failure)),
            (&plain, failed(HandlerError::permanent("no such account")), None),
            (&strict, failed(HandlerError::permanent("no such account")), Some(Signal::Failure)),
            (&strict, failed(HandlerError::discard("old")), None),
            (&strict, Verdict::dead_letter("chosen"), None),
            (&strict, Verdict::skip("chosen"), None),
            (&strict, Verdict::retry_after(std::time::Duration::ZERO, "chosen"), None),
        ];
        for (breaker, verdict, signal) in table {
            assert_eq!(breaker.signal(&verdict), signal, "{verdict:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_gate_waits_while_it_is_open_and_lets_one_through_then() {
        let config = BreakerConfig { samples_min: 1, ..BreakerConfig::default() };
        let gate = CircuitGate::new(Some(CircuitBreaker::new(config)), |_| {});
        assert_eq!(gate.limit(8), 8);
        let failed = Verdict::from(HandlerError::retryable("down"));
        gate.report(&failed, Instant::now(), &Cancellation::new());
        assert_eq!((gate.limit(8), *gate.watch().borrow()), (0, Circuit::Open));
        let begun = Instant::now();
        gate.not_open().await;
        assert_eq!((begun.elapsed(), gate.limit(8)), (config.open_for, 1));
        for _ in 0..config.probes {
            gate.report(&Verdict::complete(), Instant::now(), &Cancellation::new());
        }
        assert_eq!(gate.limit(8), 8);
    }

    #[tokio::test]
    async fn without_a_breaker_nothing_is_counted() {
        let gate = CircuitGate::new(None, |_| {});
        for _ in 0..100 {
            gate.report(&HandlerError::retryable("down").into(), Instant::now(), &Cancellation::new());
        }
        assert_eq!(gate.limit(8), 8);
        gate.not_open().await;
    }
}
