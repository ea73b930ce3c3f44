//! Handlers: plain async functions, told apart by their arguments.

use mailslot_core::handler::BoxError;
use mailslot_core::{
    Delivery, Extensions, FieldError, FromMessage, FromMessageParts, IntoVerdict, Retry, Verdict,
};
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;
use tower::util::BoxCloneSyncService;

/// A handler behind its layers: a tower service from delivery to verdict.
pub type BoxedHandler = BoxCloneSyncService<Delivery, Verdict, BoxError>;

/// An async function that handles messages: `async fn(message, extractor, …) -> result`.
///
/// The message comes first, then up to eight extractors ([`FromMessageParts`]); the result is whatever converts into a
/// [`Verdict`]. `Args` only tells functions with different arguments apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not a handler",
    note = "a handler is `async fn(message, extractors…) -> Result<(), E>`: the message first, by value",
    note = "every argument after it must be an extractor such as `Context` or `State<T>`, and the future must be `Send`"
)]
pub trait Handler<M, Args>: Clone + Send + Sync + 'static {
    /// Runs it on one delivery.
    fn handle(self, delivery: Delivery) -> impl Future<Output = Verdict> + Send;

    /// Checks that what its arguments need is registered.
    ///
    /// # Errors
    /// What is missing and how to register it.
    fn check(extensions: &Extensions) -> Result<(), FieldError>;
}

macro_rules! handler {
    ($($part:ident $value:ident),*) => {
        impl<F, Fut, M, $($part),*> Handler<M, ($($part,)*)> for F
        where
            F: Fn(M, $($part),*) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future + Send,
            Fut::Output: IntoVerdict,
            M: FromMessage,
            $($part: FromMessageParts,)*
        {
            async fn handle(self, delivery: Delivery) -> Verdict {
                let context = &delivery.context;
                let message = match M::from_message(context) {
                    Ok(message) => message,
                    Err(error) => return error.into(),
                };
                $(let $value = match $part::from_message_parts(context).await {
                    Ok(part) => part,
                    Err(error) => return error.into(),
                };)*
                self(message, $($value),*).await.into_verdict()
            }

            fn check(_extensions: &Extensions) -> Result<(), FieldError> {
                $($part::check(_extensions)?;)*
                Ok(())
            }
        }
    };
}

handler!();
handler!(P1 p1);
handler!(P1 p1, P2 p2);
handler!(P1 p1, P2 p2, P3 p3);
handler!(P1 p1, P2 p2, P3 p3, P4 p4);
handler!(P1 p1, P2 p2, P3 p3, P4 p4, P5 p5);
handler!(P1 p1, P2 p2, P3 p3, P4 p4, P5 p5, P6 p6);
handler!(P1 p1, P2 p2, P3 p3, P4 p4, P5 p5, P6 p6, P7 p7);
handler!(P1 p1, P2 p2, P3 p3, P4 p4, P5 p5, P6 p6, P7 p7, P8 p8);

/// Settings of one handler that differ from the inbox's.
#[derive(Debug, Clone, Default)]
pub struct HandlerOptions {
    pub(crate) retry: Option<Retry>,
    pub(crate) time_limit: Option<Duration>,
}

impl HandlerOptions {
    /// No differences.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its own retry policy.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Its own time limit.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }
}

/// A handler as the innermost service of its stack of layers.
pub(crate) fn into_service<M, Args, H: Handler<M, Args>>(handler: H) -> BoxedHandler {
    let service = tower::service_fn(move |delivery: Delivery| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.handle(delivery).await) }
    });
    BoxCloneSyncService::new(tower::util::MapErr::new(service, |never: Infallible| match never {}))
}
