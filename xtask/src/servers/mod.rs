//! The real servers that the tests use: PostgreSQL 15, the newest PostgreSQL, pgbouncer in front of the first, and RabbitMQ.

mod command;
mod debian;
mod logs;
mod newest;
mod programs;
mod running;

pub(crate) use command::run;
pub(crate) use programs::Programs;

use anyhow::Result;
use running::Running;
use std::process::Command;

/// Servers, and the environment variables by which the tests find them. They stop when this is dropped.
pub(crate) struct Servers(Option<Running>);

impl Servers {
    /// Starts the servers, unless the environment names some that run already.
    pub(crate) fn start(programs: &Programs) -> Result<Self> {
        let running = match programs {
            Programs::ServersAreGiven => None,
            Programs::Here(installed) => Some(Running::start(installed)?),
        };
        Ok(Self(running))
    }

    /// What has to be set for whoever uses the servers; nothing if it is set already.
    pub(crate) fn variables(&self) -> &[(&'static str, String)] {
        self.0.as_ref().map_or(&[], |running| &running.variables)
    }

    /// Tells a command of the servers.
    pub(crate) fn show_to(&self, mut command: Command) -> Command {
        command.envs(self.variables().iter().map(|(name, value)| (name, value)));
        command
    }

    /// Keeps the logs of the servers after their end, and says where they are.
    pub(crate) fn keep_logs(&mut self) {
        if let Some(running) = &mut self.0 {
            running.logs.keep();
        }
    }
}
