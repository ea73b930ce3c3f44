//! The shortest way through the engine: accept, handle, settle.

use mailslot_core::{Context, HandlerError, Json, MemoryStore, Message, State};
use mailslot_engine::Inbox;
use serde::{Deserialize, Serialize};
use std::future::{Future as _, IntoFuture as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::oneshot;

#[derive(Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Message for Greet {
    const NAME: &'static str = "test.greet";
    const VERSION: u32 = 1;
    type Codec = Json;
}

async fn greet(
    message: Greet,
    context: Context,
    State(count): State<Arc<AtomicU32>>,
) -> Result<(), HandlerError> {
    assert_eq!(context.attempt().number, 1);
    assert_eq!(message.name, "world");
    count.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

#[tokio::test]
async fn a_message_is_accepted_once_and_handled_once() {
    let count = Arc::new(AtomicU32::new(0));
    let inbox = Inbox::builder(MemoryStore::new()).handler(greet).state(count.clone()).build().unwrap();
    let message = Greet { name: "world".into() };
    let first = inbox.accept(&message).idempotency_key("k").await.unwrap();
    let second = inbox.accept(&message).idempotency_key("k").await.unwrap();
    assert_eq!(first.id, second.id);
    assert!(first.is_new() && !second.is_new());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let inbox = inbox.clone();
        async move { inbox.run(async { stopped.await.unwrap_or(()) }).await }
    });
    inbox.watch().wait_for(|stats| stats.completed == 1).await.unwrap();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert!(inbox.operator().check().await.unwrap().is_empty());
}

/// Without a runtime nothing could ever answer: the accept must say so at once instead of waiting.
#[test]
fn an_accept_outside_of_a_runtime_fails_at_once() {
    let inbox = Inbox::builder(MemoryStore::new()).contract::<Greet>().build().unwrap();
    let mut accept = Box::pin(inbox.accept(&Greet { name: "world".into() }).into_future());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(answer) = accept.as_mut().poll(&mut context) else { panic!("it waits") };
    let error = answer.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("runtime"), "{error}");
}
