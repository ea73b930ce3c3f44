//! mailslot
