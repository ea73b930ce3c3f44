//! Why a server could not be started or controlled.

use std::fmt::{Display, Formatter};

/// Says what failed and why, in words for the person who runs the tests; often with the end of the server's log.
#[derive(Debug)]
pub struct ServerError(String);

impl ServerError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Display for ServerError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ServerError {}

/// Adds what was tried to an error of the operating system.
pub(crate) trait Explain<T> {
    fn explain(self, what: impl FnOnce() -> String) -> Result<T, ServerError>;
}

impl<T, E: Display> Explain<T> for Result<T, E> {
    fn explain(self, what: impl FnOnce() -> String) -> Result<T, ServerError> {
        self.map_err(|error| ServerError(format!("failed to {}: {error}", what())))
    }
}
