//! Tower layers around handlers.

use super::bench::{Bench, start, succeed};
use mailslot_core::handler::BoxError;
use mailslot_core::{Delivery, OutcomeKind, Reason, Verdict};
use mailslot_engine::BoxedHandler;
use std::sync::{Arc, Mutex, PoisonError};
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt, layer::layer_fn, service_fn};

cases![
    layers_run_in_order_with_the_last_one_outermost,
    a_layer_sees_the_delivery_and_may_change_the_verdict,
    an_error_of_a_layer_is_a_retryable_failure,
];

/// What happened, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(super) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.into());
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Writes into the log before and after what is inside.
fn logging(name: &'static str, log: &Log) -> impl tower::Layer<BoxedHandler, Service = BoxedHandler> + use<> {
    let log = log.clone();
    layer_fn(move |inner: BoxedHandler| {
        let log = log.clone();
        BoxCloneSyncService::new(service_fn(move |delivery: Delivery| {
            let (inner, log) = (inner.clone(), log.clone());
            async move {
                log.add(format!("{name} before"));
                let verdict = inner.oneshot(delivery).await;
                log.add(format!("{name} after"));
                verdict
            }
        }))
    })
}

async fn layers_run_in_order_with_the_last_one_outermost(b: &Bench) {
    let log = Log::default();
    let handler = {
        let log = log.clone();
        move |_: super::script::Order| {
            log.add("handler");
            async {}
        }
    };
    let builder = b.builder().layer(logging("first", &log)).handler(handler).layer(logging("second", &log));
    let worker = start(builder);
    worker.order(1).await;
    worker.until(|stats| stats.completed == 1).await;
    worker.stop().await;
    assert_eq!(log.lines(), ["second before", "first before", "handler", "first after", "second after"]);
}

async fn a_layer_sees_the_delivery_and_may_change_the_verdict(b: &Bench) {
    let layer = layer_fn(|inner: BoxedHandler| {
        service_fn(move |delivery: Delivery| {
            let inner = inner.clone();
            async move {
                let size = delivery.payload().bytes().len();
                let verdict = inner.oneshot(delivery).await?;
                assert!(verdict.is_complete());
                Ok::<_, BoxError>(Verdict::skip(format!("{size} bytes")))
            }
        })
    });
    let worker = start(b.builder().handler(succeed).layer(layer));
    let id = worker.order(1).await;
    worker.until(|stats| stats.skipped == 1).await;
    worker.stop().await;
    assert_eq!(b.record(id).await.error.expect("the text is kept").as_str(), "22 bytes");
}

async fn an_error_of_a_layer_is_a_retryable_failure(b: &Bench) {
    let layer = layer_fn(|_: BoxedHandler| {
        service_fn(async |_: Delivery| Err::<Verdict, BoxError>("the limiter is full".into()))
    });
    let worker = start(b.builder().handler(succeed).layer(layer));
    let id = worker.order(1).await;
    worker.until(|stats| stats.retried == 1).await;
    worker.stop().await;
    assert_eq!(b.outcomes(id).await, [(OutcomeKind::Retried, Some(Reason::Failed))]);
    assert_eq!(b.record(id).await.error.expect("the text is kept").as_str(), "the limiter is full");
}
