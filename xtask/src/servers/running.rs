//! The servers of one run.

use super::logs::Logs;
use super::programs::Installed;
use crate::step;
use anyhow::{Context, Result, anyhow};
use mailslot_servers::environment;
use mailslot_servers::{Pgbouncer, PgbouncerConfig, PostgresConfig, PostgresServer, RabbitMq};
use std::path::Path;

/// Fewer than the transactions that the tests have open at once, so that clients change connections all the time.
const POOL_SIZE: u16 = 8;

/// Servers that stop when this is dropped.
pub(crate) struct Running {
    /// How the tests find them.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// What they write.
    pub(crate) logs: Logs,
    _rabbitmq: RabbitMq,
    _pgbouncer: Pgbouncer,
    _postgres: PostgresServer,
    _newest: PostgresServer,
}

impl Running {
    /// Starts all of them, and returns when all accept connections.
    pub(crate) fn start(installed: &Installed) -> Result<Self> {
        let mut logs = Logs::create()?;
        let started = start_all(installed, &logs);
        if started.is_err() {
            logs.keep();
        }
        let Started { postgres, newest, pgbouncer, rabbitmq } = started?;
        let variables = vec![
            (environment::POSTGRES, postgres.url()),
            (environment::POSTGRES_NEWEST, newest.url()),
            (environment::PGBOUNCER, pgbouncer.url()),
            (environment::RABBITMQ, rabbitmq.url()),
            (environment::POSTGRES_BIN, text(&installed.postgres_bin)?),
            (environment::POSTGRES_NEWEST_BIN, text(&installed.newest_bin)?),
        ];
        Ok(Self {
            variables,
            logs,
            _rabbitmq: rabbitmq,
            _pgbouncer: pgbouncer,
            _postgres: postgres,
            _newest: newest,
        })
    }
}

struct Started {
    postgres: PostgresServer,
    newest: PostgresServer,
    pgbouncer: Pgbouncer,
    rabbitmq: RabbitMq,
}

fn start_all(installed: &Installed, logs: &Logs) -> Result<Started> {
    let start = |name: &'static str, bin: &Path| {
        let log = logs.of(name);
        let server = || PostgresServer::start_from(bin, PostgresConfig::default(), Some(log));
        step::prepare(&format!("start {name}"), || Ok(server()?))
    };
    let start_rabbitmq = || {
        let server = || RabbitMq::start_from(&installed.rabbitmq_bin, Some(logs.of("rabbitmq")));
        step::prepare("start rabbitmq", || Ok(server()?))
    };
    let (postgres, newest, rabbitmq) = std::thread::scope(|scope| {
        let newest = scope.spawn(|| start("postgres-newest", &installed.newest_bin));
        let rabbitmq = scope.spawn(start_rabbitmq);
        let postgres = start("postgres", &installed.postgres_bin);
        (postgres, newest.join(), rabbitmq.join())
    });
    let panicked = |_| anyhow!("the start of a server panicked");
    let (postgres, newest) = (postgres?, newest.map_err(panicked)??);
    let rabbitmq = rabbitmq.map_err(panicked)??;
    let config = PgbouncerConfig { server_port: postgres.port(), pool_size: POOL_SIZE };
    let pgbouncer = step::prepare("start pgbouncer", || {
        Ok(Pgbouncer::start_from(&installed.pgbouncer, config, Some(logs.of("pgbouncer")))?)
    })?;
    Ok(Started { postgres, newest, pgbouncer, rabbitmq })
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).with_context(|| format!("{} is no text", path.display()))
}
