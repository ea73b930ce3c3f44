//! What a store can do beyond what its traits demand.

/// Declared by each store. Chooses the cases of the conformance suite and fills the table in the store's docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent ability")]
pub struct Capabilities {
    /// The kind of store, such as `sqlite`.
    pub backend: &'static str,
    /// A receipt survives the death of the process and the machine.
    pub durable: bool,
    /// Several processes may share it.
    pub multi_process: bool,
    /// Messages can be appended in the caller's own transaction, and handlers can commit with their completion.
    pub transactions: bool,
    /// An accept in one process wakes workers in another without a poll.
    pub wakes_other_processes: bool,
    /// A look-up sees what any process committed before it. Without it a redelivery elsewhere can look new.
    pub reads_latest: bool,
    /// How many appends of one process it takes well at once: more than one where their commits share a write to disk.
    pub appends_at_once: usize,
    /// How many exchanges of one worker it takes well at once.
    pub exchanges_at_once: usize,
}

impl Capabilities {
    /// A store of this kind that can do nothing extra yet; switch on what it can.
    pub const fn none(backend: &'static str) -> Self {
        Self {
            backend,
            durable: false,
            multi_process: false,
            transactions: false,
            wakes_other_processes: false,
            reads_latest: false,
            appends_at_once: 1,
            exchanges_at_once: 1,
        }
    }
}
