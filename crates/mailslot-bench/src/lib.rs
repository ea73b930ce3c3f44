//! mailslot-bench
