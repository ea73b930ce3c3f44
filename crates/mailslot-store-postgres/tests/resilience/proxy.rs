//! A line to a server that can go dead without being closed, as lines do whose other end lost its power.

use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Forwards connections to a server.
pub(crate) struct Proxy {
    port: u16,
    /// Connections that were made before this one are dead.
    dead: Arc<watch::Sender<u64>>,
    /// What a client sends before its connection goes dead.
    fatal: Arc<watch::Sender<Fatal>>,
    _forwarding: JoinSet<()>,
}

/// What a client sends when its connection goes dead, and how many did.
#[derive(Debug, Default)]
struct Fatal {
    /// The first marks a connection, and it goes dead at the second.
    words: Option<[&'static [u8]; 2]>,
    cut: u32,
}

impl Proxy {
    pub(crate) async fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (dead, fatal) = (Arc::new(watch::Sender::new(0)), Arc::new(watch::Sender::new(Fatal::default())));
        let mut forwarding = JoinSet::new();
        forwarding.spawn(forward_all(listener, server_port, dead.clone(), fatal.clone()));
        Self { port, dead, fatal, _forwarding: forwarding }
    }

    /// `url` by way of this.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Lets every connection that there is go dead. Later ones work.
    pub(crate) fn cut(&self) {
        self.dead.send_modify(|dead| *dead += 1);
    }

    /// Lets the next connection that sends the first go dead when it sends the second, which is not passed on.
    pub(crate) fn cut_at(&self, mark: &'static str, end: &'static str) {
        self.fatal.send_modify(|fatal| fatal.words = Some([mark.as_bytes(), end.as_bytes()]));
    }

    /// Waits until a connection has gone dead at what it sent.
    pub(crate) async fn until_cut(&self) {
        let mut fatal = self.fatal.subscribe();
        crate::rig::soon("a connection is cut", fatal.wait_for(|fatal| fatal.cut > 0)).await.unwrap();
    }
}

async fn forward_all(
    listener: TcpListener,
    server_port: u16,
    dead: Arc<watch::Sender<u64>>,
    fatal: Arc<watch::Sender<Fatal>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else { continue };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let line = Line { made: *dead.borrow(), dead: dead.clone() };
        connections.spawn(line.clone().forward(from_client, to_server, Some(fatal.clone())));
        connections.spawn(line.forward(from_server, to_client, None));
    }
}

/// One direction of a connection.
#[derive(Clone)]
struct Line {
    made: u64,
    dead: Arc<watch::Sender<u64>>,
}

impl Line {
    async fn forward(
        self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        fatal: Option<Arc<watch::Sender<Fatal>>>,
    ) {
        let mut cut = self.dead.subscribe();
        let is_dead = cut.wait_for(|dead| *dead > self.made);
        tokio::select! {
            biased;
            _ = is_dead => {}
            closed = pass_on(&mut from, &mut to, fatal) => if closed { return },
        }
        // Neither end hears of it: both halves stay open, and nothing passes.
        std::future::pending::<()>().await;
    }
}

/// Whether the connection was closed; otherwise it has gone dead.
async fn pass_on(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    fatal: Option<Arc<watch::Sender<Fatal>>>,
) -> bool {
    let mut buffer = vec![0; 16 * 1024];
    let mut is_marked = false;
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else { return true };
        if fatal.as_ref().is_some_and(|fatal| is_fatal(fatal, &buffer[..count], &mut is_marked)) {
            return false;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return true;
        }
    }
}

/// Whether what is sent is what a connection is to go dead at; only one does.
fn is_fatal(fatal: &watch::Sender<Fatal>, sent: &[u8], is_marked: &mut bool) -> bool {
    let holds = |words: &[u8]| sent.windows(words.len()).any(|window| window == words);
    fatal.send_if_modified(|fatal| {
        let found = fatal.words.take_if(|[mark, end]| {
            *is_marked |= holds(mark);
            *is_marked && holds(end)
        });
        fatal.cut += u32::from(found.is_some());
        found.is_some()
    })
}
