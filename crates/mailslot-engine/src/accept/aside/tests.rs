//! On a memory store in which some keys are held: an append that wants one of them fails.

use super::*;
use crate::accept::writer::AcceptWriter;
use crate::accept::{AcceptError, BatchError};
use async_trait::async_trait;
use futures_util::future::{join_all, try_join_all};
use jiff::Timestamp;
use mailslot_core::store::{Exchange, Exchanged, ExtendRequest, Extended, Recovered};
use mailslot_core::{
    Capabilities, ContentType, Contract, Idempotency, IdempotencyKey, InboxStore, MemoryStore, Metadata,
    OperatorStore as _, Payload, Receipt, WorkSignal,
};
use tokio::sync::watch;

#[derive(Clone)]
struct HeldStore {
    store: MemoryStore,
    held: Arc<Mutex<HashSet<String>>>,
    /// How many groups each append had.
    appends: watch::Sender<Vec<usize>>,
}

fn key_of(message: &NewMessage) -> &str {
    message.metadata.idempotency.key().unwrap().as_str()
}

impl HeldStore {
    fn new(held: &[&str]) -> Self {
        let held = held.iter().map(|&key| key.to_owned()).collect();
        Self {
            store: MemoryStore::new(),
            held: Arc::new(Mutex::new(held)),
            appends: watch::Sender::default(),
        }
    }

    fn let_go(&self, key: &str) {
        self.held.lock().unwrap().remove(key);
    }

    fn is_held(&self, groups: &[AppendGroup]) -> bool {
        let held = self.held.lock().unwrap();
        groups.iter().flat_map(|group| &group.messages).any(|message| held.contains(key_of(message)))
    }

    fn writer(&self) -> AcceptWriter {
        AcceptWriter::new(Arc::new(self.clone()), StatsSender::new(), None)
    }
}

#[async_trait]
impl InboxStore for HeldStore {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.store.now().await
    }

    async fn append(&self, groups: Vec<AppendGroup>) -> Result<Vec<Vec<Appended>>, StoreError> {
        // As a server would: what is under way ends after others have come.
        tokio::task::yield_now().await;
        self.appends.send_modify(|appends| appends.push(groups.len()));
        if self.is_held(&groups) {
            return Err(StoreError::new(StoreErrorKind::Busy, "append", "a test holds it").of_some());
        }
        self.store.append(groups).await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, StoreError> {
        self.store.exchange(exchange).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Extended>, StoreError> {
        self.store.extend(request).await
    }

    async fn recover(&self, limit: usize) -> Result<Recovered, StoreError> {
        self.store.recover(limit).await
    }

    fn work_signal(&self) -> &WorkSignal {
        self.store.work_signal()
    }
}

mailslot_core::delegate_operator_store!([] HeldStore, store);

fn keyed(key: &str) -> AppendGroup {
    let idempotency = Idempotency::keyed(IdempotencyKey::new(key).unwrap());
    let metadata = Metadata { idempotency, ..Metadata::default() };
    let payload = Payload::new("{}", ContentType::default()).unwrap();
    NewMessage::new(Contract::new("order", 1).unwrap(), payload, metadata).into()
}

async fn accept(writer: &AcceptWriter, key: &str) -> Result<Receipt, StoreErrorKind> {
    match writer.accept(keyed(key)).await {
        Ok(receipts) => Ok(receipts.into_iter().next().unwrap()),
        Err(BatchError { error: AcceptError::Store(error), .. }) => Err(error.kind()),
        Err(error) => panic!("no failure of the store: {error}"),
    }
}

async fn accept_all(writer: &AcceptWriter, keys: impl Iterator<Item = String>) {
    let accepts = keys.map(|key| async move { accept(writer, &key).await });
    let receipts = try_join_all(accepts).await.unwrap();
    assert!(receipts.iter().all(Receipt::is_new));
}

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("key {number}"))
}

#[tokio::test(start_paused = true)]
async fn the_others_of_a_batch_are_stored_by_a_few_appends_and_the_held_one_is_told() {
    let store = HeldStore::new(&["held"]);
    let writer = store.writer();
    let others = async {
        tokio::task::yield_now().await;
        accept_all(&writer, numbered(511)).await;
        store.appends.borrow().len()
    };
    let (held, appends) = tokio::join!(accept(&writer, "held"), others);
    assert_eq!(held, Err(StoreErrorKind::Busy));
    // The shared one, the same again, and two of each half.
    assert!(appends <= 2 + 2 * 9, "{appends} appends");
    assert!(accept(&writer, "later").await.unwrap().is_new());
}

#[tokio::test(start_paused = true)]
async fn whoever_wants_what_is_waited_for_joins_who_waits_and_spoils_no_batch() {
    let store = HeldStore::new(&["held"]);
    let writer = store.writer();
    let mut appends = store.appends.subscribe();
    let first = accept(&writer, "held");
    let others = async {
        appends.wait_for(|appends| appends.len() == 2).await.unwrap();
        tokio::task::yield_now().await;
        let more = join_all((0..20).map(|_| accept(&writer, "held")));
        let (more, ()) = tokio::join!(more, accept_all(&writer, numbered(20)));
        assert!(more.iter().all(|answer| *answer == Err(StoreErrorKind::Busy)), "{more:?}");
    };
    let (first, ()) = tokio::join!(first, others);
    assert_eq!(first, Err(StoreErrorKind::Busy));
    // The first was tried alone by the writer; after that the shared ones held no held one.
    let shared: Vec<_> = store.appends.borrow().iter().copied().filter(|groups| *groups > 1).collect();
    assert_eq!(shared, [20]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_stored_when_the_key_is_let_go() {
    let store = HeldStore::new(&["held"]);
    let writer = store.writer();
    let mut appends = store.appends.subscribe();
    let let_go = async {
        appends.wait_for(|appends| appends.len() > 5).await.unwrap();
        store.let_go("held");
    };
    let waiting = join_all((0..3).map(|_| accept(&writer, "held")));
    let (receipts, ()) = tokio::join!(waiting, let_go);
    let new = receipts.iter().filter(|receipt| receipt.as_ref().unwrap().is_new()).count();
    assert_eq!(new, 1);
}

#[tokio::test(start_paused = true)]
async fn more_held_keys_than_can_be_waited_for_keep_nobody_else_out() {
    let held: Vec<_> = (0..2 * ROOMS_MAX).map(|number| format!("held {number}")).collect();
    let store = HeldStore::new(&held.iter().map(String::as_str).collect::<Vec<_>>());
    let writer = store.writer();
    let held = join_all(held.iter().map(|key| accept(&writer, key)));
    let (held, ()) = tokio::join!(held, accept_all(&writer, numbered(300)));
    assert!(held.iter().all(|answer| *answer == Err(StoreErrorKind::Busy)), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn an_accept_that_waits_is_answered_although_its_writer_is_gone() {
    let store = HeldStore::new(&["held"]);
    let writer = store.writer();
    let mut appends = store.appends.subscribe();
    let accepting = tokio::spawn(async move { accept(&writer, "held").await });
    appends.wait_for(|appends| appends.len() == 2).await.unwrap();
    accepting.abort();
    store.let_go("held");
    let stored = async || store.store.counts().await.unwrap().iter().map(|count| count.messages).sum::<u64>();
    while stored().await == 0 {
        appends.changed().await.unwrap();
    }
}
