//! The schema: how it is made, shared between versions, guarded against changes by hand, and what roles may do with it.

mod drift;
mod roles;
mod support;
mod versions;
