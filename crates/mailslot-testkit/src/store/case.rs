//! One case, and what a store needs to run it.

use super::fixture::{Fixture, Opened};
use futures_util::future::LocalBoxFuture;
use std::fmt;

/// A behaviour that every store must show.
#[derive(Clone, Copy)]
pub struct Case {
    /// The file that it stands in.
    pub(super) noun: &'static str,
    /// Its name, a sentence.
    pub(super) name: &'static str,
    /// What the store must be able to do.
    pub(super) need: Need,
    /// The case itself. It panics where the store misbehaves.
    pub(super) body: Body,
}

pub(super) type Body = for<'a> fn(&'a mut Fixture) -> LocalBoxFuture<'a, ()>;

impl Case {
    /// The noun and the sentence, as the runner prints them.
    pub fn name(&self) -> String {
        format!("{}::{}", self.noun, self.name)
    }

    /// What the store must be able to do.
    pub fn need(&self) -> Need {
        self.need
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// What a case needs beyond the traits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing: every store must pass.
    Nothing,
    /// A durable store whose constructor can open the same data again.
    Reopen,
    /// A store that several processes may share, whose constructor can open the same data again.
    Sharing,
    /// The same, and an accept through one handle wakes another.
    WakingOthers,
}

impl Need {
    /// Why the case cannot run on this store, if it cannot.
    pub(super) fn missing(self, opened: &Opened) -> Option<&'static str> {
        let can = opened.store.capabilities();
        match self {
            Self::Reopen if !can.durable => Some("the store is not durable"),
            Self::Sharing if !can.multi_process => Some("the store belongs to one process"),
            Self::WakingOthers if !can.multi_process || !can.wakes_other_processes => {
                Some("the store does not wake other processes")
            }
            Self::Reopen | Self::Sharing | Self::WakingOthers if opened.reopen.is_none() => {
                Some("the constructor gives no way to open the same data again")
            }
            Self::Nothing | Self::Reopen | Self::Sharing | Self::WakingOthers => None,
        }
    }
}

/// Lists the cases of a file: `cases![first, second needs Reopen]`.
macro_rules! cases {
    ($($case:ident $(needs $need:ident)?),+ $(,)?) => {
        pub(super) fn cases() -> Vec<$crate::store::Case> {
            vec![$($crate::store::Case {
                noun: module_path!().rsplit("::").next().unwrap_or_default(),
                name: stringify!($case),
                need: cases!(@need $($need)?),
                body: |fx| Box::pin($case(fx)),
            }),+]
        }
    };
    (@need) => { $crate::store::Need::Nothing };
    (@need $need:ident) => { $crate::store::Need::$need };
}
