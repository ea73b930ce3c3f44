//! The real servers of the tests: that the shared ones answer, and that a test's own obeys.

use libtest_mimic::{Arguments, Failed, Trial};
use mailslot_testkit::servers::{
    self, Pgbouncer, PgbouncerConfig, PostgresConfig, PostgresRelease, PostgresServer, RabbitMq,
};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

/// This program starts itself with this variable set, to be a process that has a server and is killed.
const OWNER: &str = "MAILSLOT_TEST_OWNER_OF_A_SERVER";

/// How long an outside process may take on a busy machine before a test gives it up.
const TIME_MAX: Duration = Duration::from_secs(60);

macro_rules! trials {
    ($($case:ident),* $(,)?) => {
        vec![$(Trial::test(stringify!($case), || $case().map_err(|error| Failed::from(error.to_string())))),*]
    };
}

fn main() -> ExitCode {
    if std::env::var_os(OWNER).is_some() {
        own_a_server();
    }
    let cases = trials![
        the_shared_servers_are_the_releases_that_they_say,
        clients_of_a_pooler_share_a_connection_between_their_transactions,
        the_pooler_looks_up_roles_in_the_server,
        settings_are_heard,
        a_setting_that_is_wrong_is_an_error_with_the_log,
        a_killed_server_is_gone_and_comes_back_with_its_data,
        an_immediate_stop_breaks_connections_and_keeps_data,
        a_fast_stop_tells_its_sessions,
        a_paused_server_answers_when_it_goes_on,
        a_dropped_server_leaves_nothing,
        a_paused_or_killed_server_leaves_nothing,
        the_server_of_a_killed_process_ends,
        the_newest_release_can_be_a_server_of_ones_own,
        a_standby_follows_until_it_is_promoted,
        a_pooler_of_ones_own_comes_back_on_its_port,
        the_shared_broker_answers,
        a_killed_broker_is_gone_and_comes_back,
    ];
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

fn the_shared_servers_are_the_releases_that_they_say() -> Result {
    let version = "show server_version_num";
    assert!(query(&servers::shared(), version)?.starts_with("15"));
    assert!(query(&servers::pgbouncer(), version)?.starts_with("15"));
    assert!(query(&servers::newest(), version)?.starts_with("18"));
    for url in [servers::shared(), servers::newest()] {
        assert_eq!(query(&url, "show max_connections")?, "300");
        assert_eq!(query(&url, "show is_superuser")?, "on");
    }
    Ok(())
}

/// In any other mode the second client would wait for the end of the first one.
fn clients_of_a_pooler_share_a_connection_between_their_transactions() -> Result {
    let server = PostgresServer::start(PostgresConfig::default())?;
    let pooler = Pgbouncer::start(PgbouncerConfig { server_port: server.port(), pool_size: 1 })?;
    let (mut first, mut second) = (Session::open(&pooler.url())?, Session::open(&pooler.url())?);
    let connection = "select pg_backend_pid()";
    assert_eq!(first.ask(connection)?, second.ask(connection)?);
    assert_eq!(second.ask(connection)?, first.ask(connection)?);
    Ok(())
}

fn the_pooler_looks_up_roles_in_the_server() -> Result {
    let role = servers::fresh_schema();
    query(&servers::shared(), &format!("create role {role} login"))?;
    let url = servers::pgbouncer().replace("postgres@", &format!("{role}@"));
    assert_eq!(query(&url, "select current_user")?, role);
    Ok(())
}

fn settings_are_heard() -> Result {
    let settings = vec!["max_connections = 7".to_owned(), "wal_level = logical".to_owned()];
    let server =
        PostgresServer::start(PostgresConfig { fsync: true, settings, ..PostgresConfig::default() })?;
    assert_eq!(query(&server.url(), "show max_connections")?, "7");
    assert_eq!(query(&server.url(), "show wal_level")?, "logical");
    assert_eq!(query(&server.url(), "show fsync")?, "on");
    let plain = PostgresServer::start(PostgresConfig::default())?;
    assert_eq!(query(&plain.url(), "show fsync")?, "off");
    Ok(())
}

fn a_setting_that_is_wrong_is_an_error_with_the_log() -> Result {
    let settings = vec!["no_such_setting = 7".to_owned()];
    let result = PostgresServer::start(PostgresConfig { settings, ..PostgresConfig::default() });
    let error = result.err().ok_or("it started")?.to_string();
    assert!(error.contains("no_such_setting"), "{error}");
    Ok(())
}

fn a_killed_server_is_gone_and_comes_back_with_its_data() -> Result {
    let mut server = PostgresServer::start(PostgresConfig { fsync: true, ..PostgresConfig::default() })?;
    let (url, port) = (server.url(), server.port());
    query(&url, "create table kept (value int)")?;
    query(&url, "insert into kept values (42)")?;
    let mut session = Session::open(&url)?;
    assert_eq!(session.ask("select 1")?, "1");

    server.kill()?;
    assert_eq!(server.count_processes(), 0);
    assert!(query(&url, "select 1").is_err());
    assert!(session.ask("select 1").is_err());

    server.restart()?;
    assert_eq!((server.url(), server.port()), (url.clone(), port));
    assert_eq!(query(&url, "select value from kept")?, "42");
    assert!(log_of(&server)?.contains("was not properly shut down"));
    Ok(())
}

fn an_immediate_stop_breaks_connections_and_keeps_data() -> Result {
    let mut server = PostgresServer::start(PostgresConfig::default())?;
    query(&server.url(), "create table kept as select 42 as value")?;
    let mut session = Session::open(&server.url())?;
    session.ask("select 1")?;

    server.stop_immediate()?;
    assert_eq!(server.count_processes(), 0);
    assert!(session.ask("select 1").is_err());

    server.restart()?;
    assert_eq!(query(&server.url(), "select value from kept")?, "42");
    assert!(log_of(&server)?.contains("was not properly shut down"));
    Ok(())
}

fn a_fast_stop_tells_its_sessions() -> Result {
    let mut server = PostgresServer::start(PostgresConfig::default())?;
    let mut session = Session::open(&server.url())?;
    session.ask("select 1")?;

    server.restart()?;
    assert!(session.ask("select 1").is_err());
    let log = log_of(&server)?;
    assert!(log.contains("terminating connection due to administrator command"), "{log}");
    assert!(!log.contains("was not properly shut down"), "{log}");
    assert_eq!(query(&server.url(), "select 1")?, "1");
    Ok(())
}

fn a_paused_server_answers_when_it_goes_on() -> Result {
    let mut server = PostgresServer::start(PostgresConfig::default())?;
    let mut session = Session::open(&server.url())?;
    session.ask("select 1")?;

    server.pause()?;
    let states = states_in(&server.data())?;
    assert!(!states.is_empty() && states.iter().all(|&state| state == 'T'), "{states:?}");
    session.send("select 2")?;
    // The one who connects now is let in by the system, and waits for a greeting.
    let mut late = Command::new(server.bin().join("pg_isready"));
    late.args(["-t", "1", "-d", &server.url()]);
    assert_eq!(late.stdout(Stdio::null()).status()?.code(), Some(2), "pg_isready says: no response");

    server.resume()?;
    assert_eq!(session.answer()?, "2");
    assert_eq!(query(&server.url(), "select 3")?, "3");
    Ok(())
}

fn a_dropped_server_leaves_nothing() -> Result {
    let server = PostgresServer::start(PostgresConfig::default())?;
    let (data, segment) = (server.data(), segment_of(&server)?);
    assert!(segments()?.contains(&segment));
    drop(server);
    assert!(!data.parent().ok_or("the data are in a directory")?.exists());
    assert!(!segments()?.contains(&segment));
    Ok(())
}

fn a_paused_or_killed_server_leaves_nothing() -> Result {
    let mut paused = PostgresServer::start(PostgresConfig::default())?;
    let mut killed = PostgresServer::start(PostgresConfig::default())?;
    let left = [segment_of(&paused)?, segment_of(&killed)?];
    let data = [paused.data(), killed.data()];
    paused.pause()?;
    killed.kill()?;
    drop((paused, killed));
    assert!(data.iter().all(|data| !data.exists()));
    let segments = segments()?;
    assert!(left.iter().all(|segment| !segments.contains(segment)));
    Ok(())
}

fn the_server_of_a_killed_process_ends() -> Result {
    let mut owner = Command::new(std::env::current_exe()?);
    let mut owner = owner.env(OWNER, "1").stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(owner.stdout.take().ok_or("the output is piped")?).lines();
    let data = lines.next().ok_or("the owner ended early")??;
    let data = Path::new(&data);
    assert!(!states_in(data)?.is_empty());

    owner.kill()?;
    owner.wait()?;

    // Nobody tells a process that its grandchildren are gone.
    let begun = Instant::now();
    while data.exists() || !states_in(data)?.is_empty() {
        assert!(begun.elapsed() < TIME_MAX, "the server outlives its owner");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    Ok(())
}

fn the_newest_release_can_be_a_server_of_ones_own() -> Result {
    let release = PostgresRelease::Newest;
    let mut server = PostgresServer::start(PostgresConfig { release, ..PostgresConfig::default() })?;
    assert!(query(&server.url(), "show server_version_num")?.starts_with("18"));
    server.kill()?;
    server.restart()?;
    assert_eq!(query(&server.url(), "select 1")?, "1");
    Ok(())
}

fn a_standby_follows_until_it_is_promoted() -> Result {
    let server = PostgresServer::start(PostgresConfig::default())?;
    query(&server.url(), "create table copied as select 42 as value")?;
    let mut standby = server.start_standby()?;
    assert_eq!(query(&standby.url(), "select value from copied")?, "42");
    let refused = query(&standby.url(), "delete from copied").expect_err("a standby writes nothing");
    assert!(refused.to_string().contains("read-only transaction"), "{refused}");

    standby.restart()?;
    assert_eq!(query(&standby.url(), "select pg_is_in_recovery()")?, "t");
    assert_eq!(query(&standby.url(), "select pg_promote()")?, "t");
    query(&standby.url(), "delete from copied")?;
    assert_eq!(query(&server.url(), "select value from copied")?, "42");
    Ok(())
}

fn a_pooler_of_ones_own_comes_back_on_its_port() -> Result {
    let server = PostgresServer::start(PostgresConfig::default())?;
    let mut pooler = Pgbouncer::start(PgbouncerConfig { server_port: server.port(), pool_size: 1 })?;
    let url = pooler.url();
    assert_eq!(query(&url, "select 1")?, "1");
    pooler.kill()?;
    assert!(query(&url, "select 1").is_err());
    pooler.restart()?;
    assert_eq!(pooler.url(), url);
    assert_eq!(query(&url, "select 1")?, "1");
    Ok(())
}

/// Starts a server, says where its data are, and waits to be killed.
#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn own_a_server() -> ! {
    let server = PostgresServer::start(PostgresConfig::default()).expect("the server starts");
    println!("{}", server.data().display());
    loop {
        std::thread::park();
    }
}

/// The answer to one statement, as text.
fn query(url: &str, sql: &str) -> Result<String> {
    let output = psql(url).args(["-c", sql]).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// One connection that stays open.
struct Session {
    psql: Child,
    answers: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Session {
    fn open(url: &str) -> Result<Self> {
        let mut psql =
            psql(url).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = psql.stdout.take().ok_or("the output is piped")?;
        Ok(Self { psql, answers: BufReader::new(output).lines() })
    }

    fn ask(&mut self, sql: &str) -> Result<String> {
        self.send(sql)?;
        self.answer()
    }

    fn send(&mut self, sql: &str) -> Result {
        use std::io::Write;
        let input = self.psql.stdin.as_mut().ok_or("the input is piped")?;
        // A mark behind each answer, because a statement such as `begin` gives none.
        Ok(writeln!(input, "{sql};\n\\echo answered")?)
    }

    /// The last line of the answer; an error if the connection is lost.
    fn answer(&mut self) -> Result<String> {
        let mut last = String::new();
        loop {
            let line = self.answers.next().ok_or("the connection is lost")??;
            if line == "answered" {
                return Ok(last);
            }
            last = line;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.psql.kill();
        let _ = self.psql.wait();
    }
}

fn psql(url: &str) -> Command {
    let mut command = Command::new(servers::postgres_bin(PostgresRelease::Oldest).join("psql"));
    command.args([
        "--no-psqlrc",
        "--quiet",
        "--tuples-only",
        "--no-align",
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        url,
    ]);
    command
}

fn log_of(server: &PostgresServer) -> Result<String> {
    Ok(std::fs::read_to_string(server.log())?)
}

/// The states of the processes that work in a directory, `T` for stopped.
fn states_in(directory: &Path) -> Result<Vec<char>> {
    let mut states = Vec::new();
    for process in std::fs::read_dir("/proc")?.flatten() {
        if std::fs::read_link(process.path().join("cwd")).is_ok_and(|place| place.starts_with(directory)) {
            let line = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            states.extend(line.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()));
        }
    }
    Ok(states)
}

/// The number of the shared memory by which the server knows that its data are in use.
fn segment_of(server: &PostgresServer) -> Result<String> {
    let file = std::fs::read_to_string(server.data().join("postmaster.pid"))?;
    let line = file.lines().nth(6).ok_or("the file is short")?;
    Ok(line.split_whitespace().nth(1).ok_or("the line is short")?.to_owned())
}

/// The numbers of all such memory on this machine.
fn segments() -> Result<Vec<String>> {
    let table = std::fs::read_to_string("/proc/sysvipc/shm")?;
    Ok(table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).map(str::to_owned).collect())
}

fn the_shared_broker_answers() -> Result {
    let url = servers::rabbitmq();
    let port = url.trim_end_matches("/%2f").rsplit(':').next().ok_or("the URL has a port")?.parse()?;
    std::net::TcpStream::connect(("127.0.0.1", port))?;
    Ok(())
}

fn a_killed_broker_is_gone_and_comes_back() -> Result {
    let mut broker = RabbitMq::start()?;
    let answers = |broker: &RabbitMq| std::net::TcpStream::connect(("127.0.0.1", broker.port())).is_ok();
    assert!(broker.control(&["list_connections"])?.is_empty());
    broker.kill()?;
    assert!(!answers(&broker));
    broker.restart()?;
    assert!(answers(&broker));
    Ok(())
}
