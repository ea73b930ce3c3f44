//! What operators and maintenance do in PostgreSQL, beyond what every store must do.

mod damage;
mod partition;
mod race;
mod support;
