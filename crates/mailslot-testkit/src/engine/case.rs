//! One case, and what a store needs to run it.

use super::bench::Bench;
use super::run::Setup;
use futures_util::future::LocalBoxFuture;
use std::fmt;

/// A behaviour that the engine must show over every store.
#[derive(Clone, Copy)]
pub struct Case {
    /// The file that it stands in.
    pub(super) noun: &'static str,
    /// Its name, a sentence.
    pub(super) name: &'static str,
    /// What the store must be able to do.
    pub(super) need: Need,
    /// The case itself. It panics where the engine misbehaves.
    pub(super) body: Body,
}

pub(super) type Body = for<'a> fn(&'a Bench) -> LocalBoxFuture<'a, ()>;

impl Case {
    /// The noun and the sentence, as the runner prints them.
    pub fn name(&self) -> String {
        format!("{}::{}", self.noun, self.name)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// What a case needs beyond the traits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: the engine must behave so over every store.
    Nothing,
    /// A store that appends and settles in the caller's transaction.
    Transactions,
}

impl Need {
    /// Why the case cannot run on this store, if it cannot.
    pub(super) fn missing(self, setup: &Setup) -> Option<&'static str> {
        match self {
            Self::Transactions if setup.transactions.is_none() => {
                Some("the store has no transactions, or its constructor does not plug them in")
            }
            Self::Nothing | Self::Transactions => None,
        }
    }
}

/// Lists the cases of a file: `cases![first, second needs Transactions]`.
macro_rules! cases {
    ($($case:ident $(needs $need:ident)?),+ $(,)?) => {
        pub(super) fn cases() -> Vec<$crate::engine::Case> {
            vec![$($crate::engine::Case {
                noun: module_path!().rsplit("::").next().unwrap_or_default(),
                name: stringify!($case),
                need: cases!(@need $($need)?),
                body: |bench| Box::pin($case(bench)),
            }),+]
        }
    };
    (@need) => { $crate::engine::case::Need::Nothing };
    (@need $need:ident) => { $crate::engine::case::Need::$need };
}
